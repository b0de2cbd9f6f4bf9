//! Every statement by its name: the texts lie in `sql/`, a few files by what they are
//! about, each statement below a heading `-- name: …`, with names for what it is given and
//! what it answers.

use gristmill_text::{position, statement};

/// Makes the list of statements, their texts, parameters and columns from one table.
macro_rules! statements {
    ($($file:ident {
        $($name:ident = $label:literal, ($($given:ident),*) $(-> ($($column:ident),+))?;)+
    })+) => {
        /// A statement of the store.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Sql { $($($name),+),+ }

        impl Sql {
            /// All of them, so that a test can look at every plan.
            pub(crate) const ALL: &'static [Sql] = &[$($(Sql::$name),+),+];

            /// Its text.
            pub(crate) const fn text(self) -> &'static str {
                match self { $($(Sql::$name => const { statement($file, $label) }),+),+ }
            }

            /// Its parameters, in the order in which they stand in its text: that is
            /// how SQLite numbers them.
            pub(crate) const fn given(self) -> &'static [&'static str] {
                match self { $($(Sql::$name => &[$(stringify!($given)),*]),+),+ }
            }

            /// The columns of its answer, where they are read.
            pub(crate) const fn columns(self) -> &'static [&'static str] {
                match self { $($(Sql::$name => &[$($(stringify!($column)),+)?]),+),+ }
            }
        }
    };
}

/// The place of a column in a statement's answer, by its name and found while
/// compiling: `at!(ClaimFront.payload)`.
macro_rules! at {
    ($sql:ident.$column:ident) => {
        const { gristmill_text::position($crate::sql::Sql::$sql.columns(), stringify!($column)) }
    };
}
pub(crate) use at;

/// A statement's parameters by their names, all of them and in the order of its text,
/// which is looked at while compiling: `bind!(TaskDelete { id: 7 })`. As in a struct, a
/// variable of the parameter's name stands for itself.
macro_rules! bind {
    (@ $name:ident) => { $name };
    (@ $name:ident $value:expr) => { $value };
    ($sql:ident { $($name:ident $(: $value:expr)?),+ $(,)? }) => {
        $crate::sql::bound(
            const { $crate::sql::named($crate::sql::Sql::$sql, &[$(stringify!($name)),+]) },
            rusqlite::params![$($crate::sql::bind!(@ $name $($value)?)),+],
        )
    };
}
pub(crate) use bind;

/// See [`bind!`].
#[expect(clippy::panic, reason = "while compiling, a misspelt name is a compile error")]
pub(crate) const fn named(sql: Sql, names: &[&str]) {
    let (given, mut rest, mut place) = (sql.given(), names, 0);
    while let [name, more @ ..] = rest {
        if position(given, name) != place {
            panic!("the parameters stand in another order in the statement");
        }
        (rest, place) = (more, place + 1);
    }
    if place != given.len() {
        panic!("the statement has more parameters");
    }
}

/// The values, whose names were looked at.
pub(crate) const fn bound<T>((): (), values: T) -> T
where
    T: Copy,
{
    values
}

const PUT: &str = include_str!("sql/put.sql");
const READY: &str = include_str!("sql/ready.sql");
const CLAIM: &str = include_str!("sql/claim.sql");
const LEASE: &str = include_str!("sql/lease.sql");
const TASK: &str = include_str!("sql/task.sql");
const LIST: &str = include_str!("sql/list.sql");
const COUNT: &str = include_str!("sql/count.sql");
const QUEUE: &str = include_str!("sql/queue.sql");
const SCHEDULE: &str = include_str!("sql/schedule.sql");
const DOCUMENT: &str = include_str!("sql/document.sql");
const ENDING: &str = include_str!("sql/ending.sql");
const WINDOW: &str = include_str!("sql/window.sql");
const SUBJECT: &str = include_str!("sql/subject.sql");
const SWEEP: &str = include_str!("sql/sweep.sql");
const STORE: &str = include_str!("sql/store.sql");
const CHECK: &str = include_str!("sql/check.sql");

statements! {
    PUT {
        IdNext = "id_next", () -> (next);
        PutStanding = "put_standing", (id) -> (run_at, source);
        PutTask = "put_task", (id, queue, key, blocked, unique_active, priority, run_at, created_at,
            encoding, grp, source, headers, settings, payload, checksum);
        PutPlain = "put_plain", (id, queue, unique_active, priority, run_at, created_at, encoding,
            payload, checksum);
        PutEight = "put_eight", (first, queue, unique_active, priority, run_at, created_at, encoding,
            payload_1, checksum_1, payload_2, checksum_2, payload_3, checksum_3, payload_4, checksum_4,
            payload_5, checksum_5, payload_6, checksum_6, payload_7, checksum_7, payload_8, checksum_8);
        PutReadyMany = "put_ready_many", (slotted, now, first, last);
        PutReady = "put_ready", (queue, priority, run_at, id, source, grp, delayed);
        PutReplace = "put_replace", (priority, run_at, encoding, headers, settings, payload, checksum, id);
        PutIdKnown = "put_id_known", (queue, id, now) -> (task, digest);
        PutIdRemember = "put_id_remember", (queue, id, task, digest, until);
        PutIdClamp = "put_id_clamp", (longest, queue);
        KeyIds = "key_ids", (queue, key) -> (id);
        Places = "places", (queue, key) -> (place, id);
        ImportTask = "import_task", (id, queue, key, place, blocked, unique_active, priority,
            run_at, created_at, attempts, claims, expiries, encoding, grp, source, headers, settings, payload,
            prev_run_at, claimed_at, failed_at, error, history, note, note_by, checksum, checkpoint);
    }
    READY {
        ReadyLevel = "ready_level", (queue, after) -> (priority);
        ReadyLevelGroup = "ready_level_group", (queue, grp, after) -> (priority);
        ReadyLevelSource = "ready_level_source", (queue, source, after) -> (priority);
        ReadyNextDue = "ready_next_due", (queue, priority, now) -> (run_at);
        ReadyNextDueSource = "ready_next_due_source", (queue, priority, now, source) -> (run_at);
        ReadyNextGroup = "ready_next_group", (queue, after) -> (grp);
        ReadyNextOpenGroup = "ready_next_open_group", (queue, after, open, latest) -> (grp);
        ReadyFirstOfGroup = "ready_first_of_group", (queue, grp, priority, now, after_run_at,
            after_id) -> (run_at, id);
        ReadyFirstOfGroupSource = "ready_first_of_group_source", (queue, grp, priority, now,
            after_run_at, after_id, source) -> (run_at, id);
        ReadyFirstInLevel = "ready_first_in_level", (queue, grp, priority, now, after_run_at,
            after_id, source) -> (run_at, id);
        ReadyRound = "ready_round", (queue, priority, after) -> (grp);
        ReadyRoundOpen = "ready_round_open", (queue, priority, after, open, latest) -> (grp);
        ReadyRoundFirst = "ready_round_first", (queue, priority) -> (grp);
        TurnGet = "turn_get", (queue, priority) -> (grp);
        TurnSet = "turn_set", (queue, priority, grp);
        ReadyGroupsInFront = "ready_groups_in_front", (queue, priority, now, limit) -> (run_at, id,
            grp);
        ReadyGroupsInFrontSource = "ready_groups_in_front_source", (queue, priority, now, source,
            limit) -> (run_at, id, grp);
        ReadyHasGroup = "ready_has_group", (queue, grp);
        ReadyDueAny = "ready_due_any", (now);
        ReadyOldest = "ready_oldest", (queue, priority) -> (run_at);
        ReadyLeave = "ready_leave", (queue, priority, run_at, id) -> (delayed);
        ReadyLeaveFront = "ready_leave_front", (queue, priority, first_run_at, first_id,
            last_run_at, last_id);
        ReadyPromote = "ready_promote", (now, limit) -> (queue);
        ReadyDemote = "ready_demote", (queue, priority, now, limit);
        ReadyRegroup = "ready_regroup", (queue);
        BlockedAdd = "blocked_add", (id);
        BlockedRemove = "blocked_remove", (id);
        Unblock = "unblock", (id);
        UnblockRead = "unblock_read", (queue, key) -> (id, priority, run_at, source, grp);
        UnblockMissed = "unblock_missed", (limit) -> (queue, key);
    }
    CLAIM {
        ClaimFront = "claim_front", (queue, priority, now, limit) -> (priority, run_at, id, delayed,
            key, place, attempts, claims, expiries, created_at, encoding, grp, source, headers,
            settings, payload, prev_run_at, checksum, checkpoint);
        ClaimFrontSource = "claim_front_source", (queue, priority, now, source, limit) -> (priority,
            run_at, id, delayed, key, place, attempts, claims, expiries, created_at, encoding, grp,
            source, headers, settings, payload, prev_run_at, checksum, checkpoint);
        ClaimOne = "claim_one", (queue, priority, run_at, id) -> (priority, run_at, id, delayed,
            key, place, attempts, claims, expiries, created_at, encoding, grp, source, headers,
            settings, payload, prev_run_at, checksum, checkpoint);
        ClaimTakeFlight = "claim_take_flight", (id);
    }
    LEASE {
        LeaseNew = "lease_new", (token, queue, worker, claimed_at, until, length, grp, slot, open,
            ids);
        LeaseByToken = "lease_by_token", (token) -> (number, queue, worker, claimed_at, until, slot,
            ids);
        LeaseAll = "lease_all", () -> (number, queue, worker, claimed_at, until, slot, ids, progress);
        LeaseProgress = "lease_progress", (number) -> (progress);
        LeaseTell = "lease_tell", (progress, number);
        LeaseLive = "lease_live", (queue, grp, now) -> (live);
        LeaseQueue = "lease_queue", (token) -> (queue);
        LeaseSlots = "lease_slots", (queue) -> (grp, slot);
        LeaseOpen = "lease_open", (queue) -> (open);
        LeaseIds = "lease_ids", (queue) -> (ids);
        BucketGet = "bucket_get", (queue, grp) -> (full_at);
        BucketAll = "bucket_all", (queue) -> (grp, full_at);
        BucketSet = "bucket_set", (queue, grp, full_at);
        BucketClamp = "bucket_clamp", (latest, queue);
        BucketForget = "bucket_forget", (queue, now);
        LeaseProlong = "lease_prolong", (until, length, number);
        LeaseShrink = "lease_shrink", (open, ids, number);
        LeaseEnd = "lease_end", (number);
        LeaseExpired = "lease_expired", (now) -> (token, queue, length);
        LeaseExpiredQueue = "lease_expired_queue", (queue, now) -> (token, queue, length);
        LeaseClamp = "lease_clamp", (now);
    }
    TASK {
        TaskById = "task_by_id", (id) -> (id, queue, key, grp, source, priority, run_at, created_at,
            place, blocked, unique_active, attempts, claims, expiries, started_releases,
            cancel_requested, encoding, prev_run_at, claimed_at, settled_token, failed_at, error,
            history, note, note_by, resolved_by, resolved_at, headers, settings, in_order);
        TaskPayload = "task_payload", (id) -> (payload, checksum, checkpoint);
        TaskCheckpoint = "task_checkpoint", (checkpoint, id);
        TaskStands = "task_stands", (id);
        TaskIsThere = "task_is_there", (id);
        TaskSave = "task_save", (place, blocked, run_at, prev_run_at, attempts, claims, expiries,
            started_releases, cancel_requested, claimed_at, settled_token, failed_at, error,
            history, note, note_by, resolved_by, resolved_at, id);
        TaskKeep = "task_keep", (id);
        TaskKeysRun = "task_keys_run", (first, last) -> (key);
        TaskGroup = "task_group", (id) -> (grp);
        TaskDelete = "task_delete", (id);
        TaskDeleteRun = "task_delete_run", (first, last);
        TaskAskCancel = "task_ask_cancel", (note, note_by, id);
        TaskCancelAsked = "task_cancel_asked", (id) -> (cancel_requested);
        FailedAdd = "failed_add", (id, queue, key, failed_at);
        FailedRemove = "failed_remove", (id);
        DoneById = "done_by_id", (id) -> (id, queue, key, grp, source, priority, run_at, created_at,
            place, blocked, unique_active, attempts, claims, expiries, started_releases,
            cancel_requested, encoding, prev_run_at, claimed_at, settled_token, failed_at, error,
            history, note, note_by, resolved_by, resolved_at, headers, settings, in_order);
        DonePayload = "done_payload", (id) -> (payload, checksum, checkpoint);
        ListOldest = "list_oldest", (from, limit) -> (id, queue, key, grp, source, priority, run_at,
            created_at, place, blocked, unique_active, attempts, claims, expiries, started_releases,
            cancel_requested, encoding, prev_run_at, claimed_at, settled_token, failed_at, error,
            history, note, note_by, resolved_by, resolved_at, headers, settings, in_order);
        ListFailedOldest = "list_failed_oldest", (from, limit) -> (id, queue, key, grp, source,
            priority, run_at, created_at, place, blocked, unique_active, attempts, claims, expiries,
            started_releases, cancel_requested, encoding, prev_run_at, claimed_at, settled_token,
            failed_at, error, history, note, note_by, resolved_by, resolved_at, headers, settings, in_order);
        ListFailedNewest = "list_failed_newest", (from, limit) -> (id, queue, key, grp, source,
            priority, run_at, created_at, place, blocked, unique_active, attempts, claims, expiries,
            started_releases, cancel_requested, encoding, prev_run_at, claimed_at, settled_token,
            failed_at, error, history, note, note_by, resolved_by, resolved_at, headers, settings, in_order);
        ListFailedQueueOldest = "list_failed_queue_oldest", (from, queue, limit) -> (id, queue, key,
            grp, source, priority, run_at, created_at, place, blocked, unique_active, attempts,
            claims, expiries, started_releases, cancel_requested, encoding, prev_run_at, claimed_at,
            settled_token, failed_at, error, history, note, note_by, resolved_by, resolved_at,
            headers, settings, in_order);
        ListFailedQueueNewest = "list_failed_queue_newest", (from, queue, limit) -> (id, queue, key,
            grp, source, priority, run_at, created_at, place, blocked, unique_active, attempts,
            claims, expiries, started_releases, cancel_requested, encoding, prev_run_at, claimed_at,
            settled_token, failed_at, error, history, note, note_by, resolved_by, resolved_at,
            headers, settings, in_order);
        ListDoneOldest = "list_done_oldest", (from, limit) -> (id, queue, key, grp, source,
            priority, run_at, created_at, place, blocked, unique_active, attempts, claims, expiries,
            started_releases, cancel_requested, encoding, prev_run_at, claimed_at, settled_token,
            failed_at, error, history, note, note_by, resolved_by, resolved_at, headers, settings, in_order);
        ListDoneNewest = "list_done_newest", (from, limit) -> (id, queue, key, grp, source,
            priority, run_at, created_at, place, blocked, unique_active, attempts, claims, expiries,
            started_releases, cancel_requested, encoding, prev_run_at, claimed_at, settled_token,
            failed_at, error, history, note, note_by, resolved_by, resolved_at, headers, settings, in_order);
    }
    LIST {
        WalkEndOldest = "walk_end_oldest", (from, rows) -> (id);
        WalkEndNewest = "walk_end_newest", (from, rows) -> (id);
        WalkOldest = "walk_oldest", (from, end, queue, pending, blocked, by, later, claims, error,
            limit) -> (id);
        WalkNewest = "walk_newest", (from, end, queue, pending, blocked, by, later, claims, error,
            limit) -> (id);
        WalkLooked = "walk_looked", (first, last) -> (looked);
        GroupOldest = "group_oldest", (grp, from, limit) -> (id);
        GroupNewest = "group_newest", (grp, from, limit) -> (id);
        SourceOldest = "source_oldest", (source, from, limit) -> (id);
        SourceNewest = "source_newest", (source, from, limit) -> (id);
        LevelIdsOldest = "level_ids_oldest", (queue, priority, later, by, from, limit) -> (id);
        LevelIdsNewest = "level_ids_newest", (queue, priority, later, by, from, limit) -> (id);
        BlockedIds = "blocked_ids", (sign, from, queue, limit) -> (id);
        FailedIds = "failed_ids", (queue, sign, from, limit) -> (id);
        DoneKeyIds = "done_key_ids", (queue, key) -> (id);
    }
    COUNT {
        CountNew = "count_new", (queue);
        CountAdd = "count_add", (ready, delayed, blocked, processing, failed_now, done_kept, put,
            duplicate, replaced, refused, claimed, done, retried, failed, released, expired,
            lease_lost, cancelled, discarded, resolved, operator_retried, subject_gone, queue);
        CountAll = "count_all", () -> (queue, ready, delayed, blocked, processing, failed_now,
            done_kept, put, duplicate, replaced, refused, claimed, done, retried, failed, released,
            expired, lease_lost, cancelled, discarded, resolved, operator_retried, subject_gone);
        CountStanding = "count_standing", (queue) -> (pending, processing, failed_now);
        MinuteAdd = "minute_add", (queue, minute, put, done, failed, wait_100ms, wait_1s, wait_10s,
            wait_1m, wait_10m, wait_1h, wait_longer);
        MinuteList = "minute_list", (queue, since) -> (minute, put, done, failed, wait_100ms,
            wait_1s, wait_10s, wait_1m, wait_10m, wait_1h, wait_longer);
        MinutePrune = "minute_prune", (queue, before, limit);
        MinuteAhead = "minute_ahead", (queue, now);
    }
    QUEUE {
        QueueAll = "queue_all", () -> (number, name, declared, overridden, paused, paused_by,
            contract, created_at);
        QueueNames = "queue_names", () -> (name);
        QueueByName = "queue_by_name", (name) -> (number, name, declared, overridden, paused,
            paused_by, contract, created_at);
        QueueByNumber = "queue_by_number", (number) -> (number, name, declared, overridden, paused,
            paused_by, contract, created_at);
        QueueLastNumber = "queue_last_number", () -> (last);
        QueueSave = "queue_save", (number, name, declared, overridden, paused, paused_by, contract,
            created_at);
    }
    SCHEDULE {
        ScheduleAll = "schedule_all", () -> (name, declared, payload, paused, paused_by,
            decided_until, last_fire, last_tasks, created_at);
        ScheduleByName = "schedule_by_name", (name) -> (name, declared, payload, paused, paused_by,
            decided_until, last_fire, last_tasks, created_at);
        ScheduleSave = "schedule_save", (name, declared, payload, paused, paused_by, decided_until,
            last_fire, last_tasks, created_at);
        ScheduleRemove = "schedule_remove", (name);
    }
    DOCUMENT {
        DocumentGet = "document_get", (kind, name) -> (name, version, body, created_at, changed_at,
            keep);
        DocumentList = "document_list", (kind, after, limit) -> (name, version, body, created_at,
            changed_at, keep);
        DocumentSave = "document_save", (kind, name, version, body, created_at, changed_at, keep);
        DocumentRemove = "document_remove", (kind, name);
        DocumentForget = "document_forget", (now);
        DocumentClamp = "document_clamp", (now);
    }
    ENDING {
        EndingGet = "ending_get", (id) -> (ending, encoding, value, error, until);
        EndingWant = "ending_want", (id, queue, until);
        EndingOpenAmong = "ending_open_among", (first, last);
        EndingSave = "ending_save", (id, queue, ending, encoding, value, error, until);
        EndingDue = "ending_due", (now, limit) -> (id, is_open);
        EndingLookAgain = "ending_look_again", (until, id);
        EndingForget = "ending_forget", (id);
        EndingClamp = "ending_clamp", (longest, queue);
        EndingAll = "ending_all", (from, limit) -> (id, ending, encoding, value, error);
    }
    WINDOW {
        WindowOf = "window_of", (queue, key, now) -> (task);
        WindowOpen = "window_open", (queue, key, task, until);
        WindowEnd = "window_end", (queue, key, task);
        WindowForget = "window_forget", (now, limit);
        WindowClamp = "window_clamp", (longest, queue);
    }
    SUBJECT {
        SubjectTable = "subject_table", (name);
        SubjectColumn = "subject_column", (table, column);
        SubjectTriggers = "subject_triggers", (deleted, updated, table) -> (standing);
    }
    SWEEP {
        SweepIds = "sweep_ids", (now, limit);
        SweepDone = "sweep_done", (queue, until, limit);
        SweepFailed = "sweep_failed", (queue, until, limit) -> (id);
    }
    STORE {
        MetaGet = "meta_get", (key) -> (value);
        MetaSet = "meta_set", (key, value);
    }
    CHECK {
        CheckSchema = "check_schema", () -> (type, name, sql);
        CheckTasks = "check_tasks", () -> (id, why);
        CheckCounts = "check_counts", () -> (number, ready, delayed, blocked, processing,
            failed_now, done_kept);
        CheckLeases = "check_leases", () -> (token, open, bytes);
        CheckProcessing = "check_processing", () -> (id);
    }
}
