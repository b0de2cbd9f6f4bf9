//! Every statement by its name: the texts lie in `sql/`, a few files by what they are
//! about, each statement below a heading `-- name: …`. Beside them the types of their
//! parameters, so that they can be sent without asking the server first, and the names
//! of their columns, by which they are read.

use gristmill_text::statement;
use tokio_postgres::types::Type;

/// Makes the list of statements, their texts, the types of their parameters and the
/// columns they answer.
macro_rules! statements {
    ($($file:ident {
        $($name:ident = $label:literal, ($($type:ident),*) $(-> ($($column:ident),+))?;)+
    })+) => {
        /// A statement of the store.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Sql { $($($name),+),+ }

        impl Sql {
            /// All of them.
            pub(crate) const ALL: &'static [Sql] = &[$($(Sql::$name),+),+];

            /// Its text, with the schema's default name.
            pub(crate) const fn text(self) -> &'static str {
                match self { $($(Sql::$name => const { statement($file, $label) }),+),+ }
            }

            /// The types of its parameters.
            pub(crate) const fn types(self) -> &'static [Type] {
                match self { $($(Sql::$name => &[$(Type::$type),*]),+),+ }
            }

            /// The columns of its answer that are read.
            pub(crate) const fn columns(self) -> &'static [&'static str] {
                match self { $($(Sql::$name => &[$($(stringify!($column)),+)?]),+),+ }
            }
        }
    };
}

/// The place of a column in a statement's answer, by its name and found while
/// compiling: `at!(Claim.next_due)`.
macro_rules! at {
    ($sql:ident.$column:ident) => {
        const { gristmill_text::position($crate::sql::Sql::$sql.columns(), stringify!($column)) }
    };
}
pub(crate) use at;

impl Sql {
    /// Whether it looks up rows of tables that are empty now and then: a plan that was
    /// made then would go on to read all of them.
    pub(crate) const fn needs_indexes(self) -> bool {
        matches!(self, Sql::PutKeyed | Sql::PutNew)
    }

    /// Why what the server answers is not what is read, if it is not. Asked once
    /// when a statement is prepared, so that reading a row costs no look at names.
    pub(crate) fn strange<'a>(self, answered: impl Iterator<Item = &'a str>) -> Option<String> {
        let wanted = self.columns();
        let answered: Vec<&str> = answered.collect();
        let is_strange = !wanted.is_empty() && wanted != answered;
        is_strange.then(|| format!("{self:?} answers {answered:?} and should answer {wanted:?}"))
    }
}

const PUT: &str = include_str!("sql/put.sql");
const LEASE: &str = include_str!("sql/lease.sql");
const TASK: &str = include_str!("sql/task.sql");
const QUEUE: &str = include_str!("sql/queue.sql");
const SCHEDULE: &str = include_str!("sql/schedule.sql");
const DOCUMENT: &str = include_str!("sql/document.sql");
const SWEEP: &str = include_str!("sql/sweep.sql");
const STORE: &str = include_str!("sql/store.sql");
const MIGRATION: &str = include_str!("sql/migration.sql");
const CHECK: &str = include_str!("sql/check.sql");
const DIAGNOSE: &str = include_str!("sql/diagnose.sql");

statements! {
    PUT {
        Put = "put", (TEXT, BYTEA_ARRAY, INT2_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY,
            TIMESTAMPTZ_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BOOL, BOOL, INT4, INT4,
            TIMESTAMPTZ) -> (is_known, outcomes, ids, run_ats, sources, details, capacity,
            bind_table, bind_column);
        PutIn = "put_in", (TEXT, BYTEA_ARRAY, INT2_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY,
            TIMESTAMPTZ_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BOOL, BOOL, INT4, INT4,
            TIMESTAMPTZ, TEXT) -> (is_known, outcomes, ids, run_ats, sources, details, capacity,
            bind_table, bind_column);
        Import = "import", (TEXT, TEXT_ARRAY, BOOL_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, INT8,
            BYTEA_ARRAY, TIMESTAMPTZ) -> (outcome, id, detail, bind_table, bind_column);
        PutPlain = "put_plain", (TEXT, BYTEA_ARRAY, INT2, INT4, TIMESTAMPTZ) -> (ids);
        PutOne = "put_one", (TEXT, BYTEA, INT2, TIMESTAMPTZ) -> (id);
        PutKeyed = "put_keyed", (TEXT, BYTEA_ARRAY, TEXT_ARRAY, INT2, INT4, INT4, TIMESTAMPTZ)
            -> (ids, standing, run_ats, sources);
        PutNew = "put_new", (TEXT, BYTEA_ARRAY, TEXT_ARRAY, INT2, INT4, INT4, TIMESTAMPTZ)
            -> (ids);
    }
    LEASE {
        Claim = "claim", (TEXT, INT4, INT8, TEXT, TEXT, UUID, INT2_ARRAY, TIMESTAMPTZ_ARRAY,
            INT8_ARRAY, BOOL, INT8, INT8, INT4, INT4, TIMESTAMPTZ, TIMESTAMPTZ) -> (now, lease,
            paused, next_due, swept, id, payload, encoding, key, grp, source, priority, attempt,
            claims, created_at, run_at, prev_run_at, headers, settings, expiries, concurrent, slot, failed,
            clean, held_back, checkpoint);
        Behind = "behind", (TEXT, INT2_ARRAY, TIMESTAMPTZ_ARRAY, INT8_ARRAY, TIMESTAMPTZ) -> (level,
            run_at, id);
        Extend = "extend", (UUID_ARRAY, INT8_ARRAY, UUID_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY,
            TEXT_ARRAY, TIMESTAMPTZ) -> (extended, cancelled, lost);
        Settle = "settle", (UUID_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TIMESTAMPTZ_ARRAY,
            INT8_ARRAY, BOOL_ARRAY, INT4_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, INT2_ARRAY, TEXT_ARRAY,
            TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, TIMESTAMPTZ_ARRAY, INT8_ARRAY, TEXT_ARRAY,
            TEXT_ARRAY, TEXT_ARRAY, BOOL, INT4, INT4, INT4, TIMESTAMPTZ, BOOL, BYTEA_ARRAY,
            INT2_ARRAY) -> (answers, became, run_ats,
            woken, follow_ups, follow_ids, follow_run_ats, follow_sources, follow_details,
            is_refused, follow_columns, freed);
        SettleIn = "settle_in", (UUID_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TIMESTAMPTZ_ARRAY,
            INT8_ARRAY, BOOL_ARRAY, INT4_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, INT2_ARRAY, TEXT_ARRAY,
            TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, TIMESTAMPTZ_ARRAY, INT8_ARRAY, TEXT_ARRAY,
            TEXT_ARRAY, TEXT_ARRAY, BOOL, INT4, INT4, INT4, TIMESTAMPTZ, BOOL, BYTEA_ARRAY,
            INT2_ARRAY, TEXT) -> (answers, became, run_ats,
            woken, follow_ups, follow_ids, follow_run_ats, follow_sources, follow_details,
            is_refused, follow_columns, freed);
        Checkpoint = "checkpoint", (UUID_ARRAY, INT8_ARRAY, BYTEA_ARRAY) -> (answers);
        Reclaim = "reclaim", (INT4, INT8, INT4, TIMESTAMPTZ) -> (taken, failed);
        CutLeases = "cut_leases", (INT4, TIMESTAMPTZ) -> (cut_leases);
    }
    TASK {
        Get = "get", (INT8) -> (state, id, queue, key, grp, source, priority, run_at, created_at,
            blocked, unique_active, attempts, claims, expiries, encoding, prev_run_at, claimed_at,
            error, history, note, note_by, failed_at, resolved_by, resolved_at, headers, settings, payload,
            worker, until, slot, cancel_requested, progress, checkpoint);
        Endings = "endings", (INT8_ARRAY, TIMESTAMPTZ) -> (ending, is_wanted, encoding, value, error);
        OpenUnder = "open_under", (UUID) -> (open);
        Find = "find", (INT4, TEXT_ARRAY) -> (key, id, place, state);
        Look = "look", (INT8, BOOL, INT4, INT4, TEXT_ARRAY, INT4, TEXT, TEXT, TEXT, TEXT, INT4,
            TIMESTAMPTZ, BOOL, TIMESTAMPTZ, TIMESTAMPTZ, INT8) -> (ids, next, looked);
        List = "list", (INT8_ARRAY, TEXT_ARRAY) -> (state, id, queue, key, grp, source, priority,
            run_at, created_at, blocked, unique_active, attempts, claims, expiries, encoding,
            prev_run_at, claimed_at, error, history, note, note_by, failed_at, resolved_by,
            resolved_at, headers, settings, payload, worker, until, slot, cancel_requested,
            progress, checkpoint);
        Operate = "operate", (TEXT, INT8_ARRAY, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, INT8) -> (id,
            answer, other, state, woken);
    }
    QUEUE {
        QueueAll = "queue_all", () -> (number, name, declared, overridden, paused, paused_by,
            contract, created_at);
        QueueByName = "queue_by_name", (TEXT) -> (number, name, declared, overridden, paused,
            paused_by, contract, created_at);
        QueueLock = "queue_lock", ();
        QueueNumbers = "queue_numbers", () -> (number, name);
        QueueSave = "queue_save", (INT4, TEXT, TEXT, TEXT, BOOL, TEXT, TEXT, TIMESTAMPTZ);
        QueueInForce = "queue_in_force", (INT4, TEXT);
        QueueStanding = "queue_standing", (INT4) -> (standing);
        SubjectBind = "subject_bind", (INT4, TEXT, TEXT, BOOL);
        Stats = "stats", (TIMESTAMPTZ) -> (queue, number, paused, capacity, oldest_ready, now,
            ready, delayed, blocked, processing, failed_now, done_kept, put, duplicate, replaced,
            refused, claimed, done, retried, failed, released, expired, lease_lost, cancelled,
            discarded, resolved, operator_retried, subject_gone);
        Minutes = "minutes", (INT4, TIMESTAMPTZ) -> (at, put, done, failed, waits);
    }
    SCHEDULE {
        ScheduleAll = "schedule_all", () -> (name, declared, payload, paused, paused_by,
            decided_until, last_fire, last_tasks, created_at);
        ScheduleLock = "schedule_lock", (TEXT) -> (name, declared, payload, paused, paused_by,
            decided_until, last_fire, last_tasks, created_at);
        ScheduleSave = "schedule_save", (TEXT, TEXT, BYTEA, BOOL, TEXT, TIMESTAMPTZ, TIMESTAMPTZ,
            INT8_ARRAY, TIMESTAMPTZ);
        ScheduleRemove = "schedule_remove", (TEXT);
        ScheduleStanding = "schedule_standing", (INT8_ARRAY) -> (id);
    }
    DOCUMENT {
        DocumentGet = "document_get", (TEXT, TEXT, TIMESTAMPTZ) -> (name, version, body,
            created_at, changed_at, keep, now);
        DocumentLock = "document_lock", (TEXT, TEXT, TIMESTAMPTZ) -> (name, version, body,
            created_at, changed_at, keep, now);
        DocumentList = "document_list", (TEXT, TEXT, INT8, TIMESTAMPTZ) -> (name, version, body,
            created_at, changed_at, keep, now);
        DocumentMake = "document_make", (TEXT, TEXT, TEXT, TIMESTAMPTZ, INT8) -> (version,
            created_at, changed_at);
        DocumentChange = "document_change", (TEXT, TEXT, TEXT, TIMESTAMPTZ, INT8, INT8) ->
            (version, created_at, changed_at);
        DocumentPut = "document_put", (TEXT, TEXT, TEXT, TIMESTAMPTZ, INT8) -> (version,
            created_at, changed_at);
        DocumentRemove = "document_remove", (TEXT, TEXT, INT8);
    }
    SWEEP {
        DueChores = "due_chores", (TIMESTAMPTZ) -> (chores, oldest_transaction, now, quiet);
        DoChore = "do_chore", (TEXT, TIMESTAMPTZ) -> (done, more, woken);
        CutAhead = "cut_ahead", (TIMESTAMPTZ);
        CountUndue = "count_undue", (INT4, INT2, TIMESTAMPTZ, INT8, INT4, TIMESTAMPTZ) -> (queue,
            level, run_at, id);
        Fold = "fold", ();
    }
    STORE {
        MetaGet = "meta_get", () -> (store_id);
        Now = "now", (TIMESTAMPTZ) -> (now);
        Notify = "notify", (TEXT, TEXT);
        Attend = "attend", () -> (connection);
        OthersListen = "others_listen", (INT4) -> (listen);
    }
    MIGRATION {
        MigrationTable = "migration_table", ();
        MigrationLock = "migration_lock", (TEXT);
        MigrationKnown = "migration_known", (TEXT) -> (stands);
        MigrationList = "migration_list", () -> (version, checksum);
        MigrationRecord = "migration_record", (INT4, TEXT);
        DefinitionStanding = "definition_standing", () -> (definitions, program);
        DefinitionList = "definition_list", () -> (kind, name, checksum, body);
        DefinitionDefine = "definition_define", (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
            BOOL_ARRAY) -> (new);
        DefinitionRemember = "definition_remember", (TEXT, INT4_ARRAY);
        RoleStanding = "role_standing", (TEXT_ARRAY) -> (role);
    }
    CHECK {
        CheckTasks = "check_tasks", (INT8, INT8) -> (id, number, queue, encoding, history, headers, settings, progress,
            is_torn);
        CheckCounts = "check_counts", () -> (queue, is_kept, kept, counted);
        CheckPlaces = "check_places", () -> (id, why);
    }
    DIAGNOSE {
        DiagnoseLoad = "diagnose_load", () -> (connections, most, notifications, age);
        DiagnoseObjects = "diagnose_objects", (TEXT) -> (kind, name, definition, valid);
        DiagnoseSettings = "diagnose_settings", () -> (name, setting, source);
        DiagnoseStandbys = "diagnose_standbys", () -> (read_only, wanted, commits, following,
            synchronous, unseen);
        DiagnoseSubjects = "diagnose_subjects", () -> (queue, bind_table, bind_column, fault,
            table_now, column_now, renamed, missing, indexed, readable);
        DiagnoseTables = "diagnose_tables", (TEXT) -> (name, live, dead, bytes, vacuumed);
        DiagnoseTransactions = "diagnose_transactions", (TIMESTAMPTZ) -> (kind, name, seconds, who,
            program, state, age, is_ours);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_their_names_and_others_are_told() {
        assert_eq!(at!(Extend.lost), 2);
        let answered = |columns: &[&'static str]| Sql::Extend.strange(columns.iter().copied());
        assert_eq!(answered(&["extended", "cancelled", "lost"]), None);
        let why = answered(&["extended", "lost", "cancelled"]).unwrap();
        assert!(why.contains("Extend") && why.contains("should answer"), "{why}");
        assert_eq!(Sql::Notify.strange(["whatever"].into_iter()), None, "nobody reads it");
    }

    #[test]
    fn every_parameter_has_a_type() {
        for sql in Sql::ALL {
            let used = |n: usize| sql.text().contains(&format!("${n}"));
            let types = sql.types().len();
            assert!((1..=types).all(used) && !used(types + 1), "{sql:?}");
        }
    }
}
