//! Every statement by its name: the texts lie in `sql/`, a few files by what they are
//! about, each statement below a heading `-- name: …`.

use gristmill_text::statement;

/// Makes the list of statements and their texts from one table.
macro_rules! statements {
    ($($file:ident { $($name:ident = $label:literal;)+ })+) => {
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
        }
    };
}

const PUT: &str = include_str!("sql/put.sql");
const READY: &str = include_str!("sql/ready.sql");
const CLAIM: &str = include_str!("sql/claim.sql");
const LEASE: &str = include_str!("sql/lease.sql");
const TASK: &str = include_str!("sql/task.sql");
const COUNT: &str = include_str!("sql/count.sql");
const QUEUE: &str = include_str!("sql/queue.sql");
const SCHEDULE: &str = include_str!("sql/schedule.sql");
const WORKER: &str = include_str!("sql/worker.sql");
const SUBJECT: &str = include_str!("sql/subject.sql");
const SWEEP: &str = include_str!("sql/sweep.sql");
const STORE: &str = include_str!("sql/store.sql");
const CHECK: &str = include_str!("sql/check.sql");

statements! {
    PUT {
        IdNext = "id_next";
        PutStanding = "put_standing";
        PutTask = "put_task";
        PutReady = "put_ready";
        PutReplace = "put_replace";
        PutIdKnown = "put_id_known";
        PutIdRemember = "put_id_remember";
        PutIdClamp = "put_id_clamp";
        KeyIds = "key_ids";
        Places = "places";
        ImportTask = "import_task";
    }
    READY {
        ReadyLevel = "ready_level";
        ReadyLevelGroup = "ready_level_group";
        ReadyLevelSource = "ready_level_source";
        ReadyNextDue = "ready_next_due";
        ReadyNextDueSource = "ready_next_due_source";
        ReadyNextGroup = "ready_next_group";
        ReadyFirstOfGroup = "ready_first_of_group";
        ReadyFirstOfGroupSource = "ready_first_of_group_source";
        ReadyGroupsInFront = "ready_groups_in_front";
        ReadyGroupsInFrontSource = "ready_groups_in_front_source";
        ReadyHasGroup = "ready_has_group";
        ReadyDueAny = "ready_due_any";
        ReadyOldest = "ready_oldest";
        ReadyLeave = "ready_leave";
        ReadyLeaveFront = "ready_leave_front";
        ReadyPromote = "ready_promote";
        ReadyDemote = "ready_demote";
        ReadyRegroup = "ready_regroup";
        BlockedAdd = "blocked_add";
        BlockedRemove = "blocked_remove";
        Unblock = "unblock";
        UnblockRead = "unblock_read";
        UnblockMissed = "unblock_missed";
    }
    CLAIM {
        ClaimFront = "claim_front";
        ClaimFrontSource = "claim_front_source";
        ClaimOne = "claim_one";
        ClaimTakeFlight = "claim_take_flight";
    }
    LEASE {
        LeaseNew = "lease_new";
        LeaseByToken = "lease_by_token";
        LeaseAll = "lease_all";
        LeaseLive = "lease_live";
        LeaseQueue = "lease_queue";
        LeaseSlots = "lease_slots";
        LeaseProlong = "lease_prolong";
        LeaseShrink = "lease_shrink";
        LeaseEnd = "lease_end";
        LeaseExpired = "lease_expired";
        LeaseExpiredQueue = "lease_expired_queue";
        LeaseClamp = "lease_clamp";
    }
    TASK {
        TaskById = "task_by_id";
        TaskPayload = "task_payload";
        TaskStands = "task_stands";
        TaskSave = "task_save";
        TaskKeep = "task_keep";
        TaskKeysRun = "task_keys_run";
        TaskDelete = "task_delete";
        TaskDeleteRun = "task_delete_run";
        TaskAskCancel = "task_ask_cancel";
        TaskCancelAsked = "task_cancel_asked";
        FailedAdd = "failed_add";
        FailedRemove = "failed_remove";
        DoneById = "done_by_id";
        DonePayload = "done_payload";
        ListOldest = "list_oldest";
        ListNewest = "list_newest";
        ListFailedOldest = "list_failed_oldest";
        ListFailedNewest = "list_failed_newest";
        ListFailedQueueOldest = "list_failed_queue_oldest";
        ListFailedQueueNewest = "list_failed_queue_newest";
        ListDoneOldest = "list_done_oldest";
        ListDoneNewest = "list_done_newest";
    }
    COUNT {
        CountNew = "count_new";
        CountAdd = "count_add";
        CountAll = "count_all";
        CountStanding = "count_standing";
        MinuteAdd = "minute_add";
        MinuteAhead = "minute_ahead";
        MinuteList = "minute_list";
        MinutePrune = "minute_prune";
    }
    QUEUE {
        QueueAll = "queue_all";
        QueueNames = "queue_names";
        QueueByName = "queue_by_name";
        QueueByNumber = "queue_by_number";
        QueueLastNumber = "queue_last_number";
        QueueSave = "queue_save";
    }
    SCHEDULE {
        ScheduleAll = "schedule_all";
        ScheduleByName = "schedule_by_name";
        ScheduleSave = "schedule_save";
        ScheduleRemove = "schedule_remove";
    }
    WORKER {
        RoleGet = "role_get";
        RoleSave = "role_save";
        WorkerSave = "worker_save";
        WorkerForget = "worker_forget";
        WorkerAll = "worker_all";
        WorkerClamp = "worker_clamp";
        AssignmentGet = "assignment_get";
        AssignmentClamp = "assignment_clamp";
        AssignmentSave = "assignment_save";
    }
    SUBJECT {
        SubjectTable = "subject_table";
        SubjectColumn = "subject_column";
        SubjectTriggers = "subject_triggers";
    }
    SWEEP {
        SweepIds = "sweep_ids";
        SweepDone = "sweep_done";
        SweepFailed = "sweep_failed";
        SweepWorkers = "sweep_workers";
    }
    STORE {
        MetaGet = "meta_get";
        MetaSet = "meta_set";
    }
    CHECK {
        CheckSchema = "check_schema";
        CheckTasks = "check_tasks";
        CheckCounts = "check_counts";
        CheckLeases = "check_leases";
        CheckProcessing = "check_processing";
    }
}
