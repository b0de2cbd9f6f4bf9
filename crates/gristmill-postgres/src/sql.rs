//! Every statement by its name: the texts lie in `sql/`, a few files by what they are
//! about, each statement below a heading `-- name: …`. Beside them the types of their
//! parameters, so that they can be sent without asking the server first.

use gristmill_text::statement;
use tokio_postgres::types::Type;

/// Makes the list of statements, their texts and parameter types.
macro_rules! statements {
    ($($file:ident { $($name:ident = $label:literal, ($($type:ident),*);)+ })+) => {
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
        }
    };
}

const PUT: &str = include_str!("sql/put.sql");
const LEASE: &str = include_str!("sql/lease.sql");
const TASK: &str = include_str!("sql/task.sql");
const QUEUE: &str = include_str!("sql/queue.sql");
const SCHEDULE: &str = include_str!("sql/schedule.sql");
const WORKER: &str = include_str!("sql/worker.sql");
const SWEEP: &str = include_str!("sql/sweep.sql");
const STORE: &str = include_str!("sql/store.sql");
const MIGRATION: &str = include_str!("sql/migration.sql");
const CHECK: &str = include_str!("sql/check.sql");
const DIAGNOSE: &str = include_str!("sql/diagnose.sql");

statements! {
    PUT {
        Put = "put", (TEXT, BYTEA_ARRAY, INT2_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY,
            TIMESTAMPTZ_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BOOL, BOOL, INT4, INT4,
            TIMESTAMPTZ);
        Import = "import", (TEXT, TEXT_ARRAY, BOOL_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, INT8,
            TIMESTAMPTZ);
    }
    LEASE {
        Claim = "claim", (TEXT, INT4, INT8, TEXT, TEXT, UUID, INT2_ARRAY, TIMESTAMPTZ_ARRAY,
            INT8_ARRAY, BOOL, INT8, INT8, INT4, INT4, TIMESTAMPTZ, TIMESTAMPTZ);
        Behind = "behind", (TEXT, INT2_ARRAY, TIMESTAMPTZ_ARRAY, INT8_ARRAY, TIMESTAMPTZ);
        Extend = "extend", (UUID_ARRAY, INT8_ARRAY, TIMESTAMPTZ);
        Settle = "settle", (UUID_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TIMESTAMPTZ_ARRAY,
            INT8_ARRAY, BOOL_ARRAY, INT4_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, INT2_ARRAY, TEXT_ARRAY,
            TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, TIMESTAMPTZ_ARRAY, INT8_ARRAY, TEXT_ARRAY,
            TEXT_ARRAY, BOOL, INT4, INT4, INT4, TIMESTAMPTZ, BOOL);
        Reclaim = "reclaim", (INT4, INT8, INT4, TIMESTAMPTZ);
        CutLeases = "cut_leases", (INT4, TIMESTAMPTZ);
    }
    TASK {
        Get = "get", (INT8);
        Find = "find", (INT4, TEXT_ARRAY);
        ListOldest = "list_oldest", (INT8, INT8, TEXT, INT4, TEXT, TEXT, TEXT, TEXT, INT4,
            TEXT_ARRAY);
        ListNewest = "list_newest", (INT8, INT8, TEXT, INT4, TEXT, TEXT, TEXT, TEXT, INT4,
            TEXT_ARRAY);
        Operate = "operate", (TEXT, INT8_ARRAY, TEXT, TEXT, TIMESTAMPTZ);
    }
    QUEUE {
        QueueAll = "queue_all", ();
        QueueByName = "queue_by_name", (TEXT);
        QueueLock = "queue_lock", ();
        QueueNumbers = "queue_numbers", ();
        QueueSave = "queue_save", (INT4, TEXT, TEXT, TEXT, BOOL, TEXT, TEXT, TIMESTAMPTZ);
        QueueInForce = "queue_in_force", (INT4, TEXT);
        QueueStanding = "queue_standing", (INT4);
        SubjectBind = "subject_bind", (INT4, TEXT, TEXT, BOOL);
        Stats = "stats", (TIMESTAMPTZ);
        Minutes = "minutes", (INT4, TIMESTAMPTZ);
    }
    SCHEDULE {
        ScheduleAll = "schedule_all", ();
        ScheduleLock = "schedule_lock", (TEXT);
        ScheduleSave = "schedule_save", (TEXT, TEXT, BYTEA, BOOL, TEXT, TIMESTAMPTZ, TIMESTAMPTZ,
            INT8_ARRAY, TIMESTAMPTZ);
        ScheduleRemove = "schedule_remove", (TEXT);
        ScheduleStanding = "schedule_standing", (INT8_ARRAY);
    }
    WORKER {
        RoleEnsure = "role_ensure", (TEXT, TIMESTAMPTZ);
        RoleGet = "role_get", (TEXT);
        RoleSave = "role_save", (TEXT, TEXT, INT8, TIMESTAMPTZ, INT8);
        WorkerSave = "worker_save", (TEXT, TEXT, TIMESTAMPTZ);
        WorkerForget = "worker_forget", (TEXT);
        WorkerAll = "worker_all", ();
        AssignmentSave = "assignment_save", (INT8, TEXT, TIMESTAMPTZ);
        AssignmentGet = "assignment_get", ();
    }
    SWEEP {
        DueChores = "due_chores", (TIMESTAMPTZ);
        DoChore = "do_chore", (TEXT, TIMESTAMPTZ);
        CutAhead = "cut_ahead", (TIMESTAMPTZ);
        CountUndue = "count_undue", (INT4, INT2, TIMESTAMPTZ, INT8, INT4, TIMESTAMPTZ);
        Fold = "fold", ();
    }
    STORE {
        MetaGet = "meta_get", ();
        Now = "now", (TIMESTAMPTZ);
        Notify = "notify", (TEXT, TEXT);
    }
    MIGRATION {
        MigrationTable = "migration_table", ();
        MigrationLock = "migration_lock", (TEXT);
        MigrationKnown = "migration_known", (TEXT);
        MigrationList = "migration_list", ();
        MigrationRecord = "migration_record", (INT4, TEXT);
        DefinitionStanding = "definition_standing", ();
        DefinitionList = "definition_list", ();
        DefinitionDefine = "definition_define", (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
            BOOL_ARRAY);
        DefinitionRemember = "definition_remember", (TEXT, INT4_ARRAY);
        RoleStanding = "role_standing", (TEXT_ARRAY);
    }
    CHECK {
        CheckTasks = "check_tasks", (INT8, INT8);
        CheckCounts = "check_counts", ();
        CheckPlaces = "check_places", ();
    }
    DIAGNOSE {
        DiagnoseLoad = "diagnose_load", ();
        DiagnoseObjects = "diagnose_objects", (TEXT);
        DiagnoseSettings = "diagnose_settings", ();
        DiagnoseStandbys = "diagnose_standbys", ();
        DiagnoseSubjects = "diagnose_subjects", ();
        DiagnoseTables = "diagnose_tables", (TEXT);
        DiagnoseTransactions = "diagnose_transactions", (TIMESTAMPTZ);
    }
}
