//! Every statement by its name: the texts lie in `sql/`, one file each, with
//! the types of their parameters, so that they can be sent without asking the
//! server first.

use tokio_postgres::types::Type;

/// Makes the list of statements, their texts and parameter types.
macro_rules! statements {
    ($($name:ident = $text:expr, ($($type:ident),*);)+) => {
        /// A statement of the store.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Sql { $($name),+ }

        impl Sql {
            /// All of them.
            pub(crate) const ALL: &'static [Sql] = &[$(Sql::$name),+];

            /// Its text, with the schema's default name.
            pub(crate) const fn text(self) -> &'static str {
                match self { $(Sql::$name => $text),+ }
            }

            /// The types of its parameters.
            pub(crate) const fn types(self) -> &'static [Type] {
                match self { $(Sql::$name => &[$(Type::$type),*]),+ }
            }
        }
    };
}

statements! {
    Put = include_str!("sql/put.sql"), (TEXT, BYTEA_ARRAY, INT2_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY,
        TIMESTAMPTZ_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BOOL, BOOL, INT4, INT4, TIMESTAMPTZ);
    Claim = include_str!("sql/claim.sql"), (TEXT, INT4, INT8, TEXT, TEXT, UUID, INT2_ARRAY, TIMESTAMPTZ_ARRAY, INT8_ARRAY, BOOL, INT8, INT8,
        INT4, INT4, TIMESTAMPTZ, TIMESTAMPTZ);
    Behind = include_str!("sql/behind.sql"), (TEXT, INT2_ARRAY, TIMESTAMPTZ_ARRAY, INT8_ARRAY, TIMESTAMPTZ);
    Settle = include_str!("sql/settle.sql"), (UUID_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TIMESTAMPTZ_ARRAY,
        INT8_ARRAY, BOOL_ARRAY, INT4_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, INT2_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, TIMESTAMPTZ_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
        BOOL, INT4, INT4, INT4, TIMESTAMPTZ, BOOL);
    Extend = include_str!("sql/extend.sql"), (UUID_ARRAY, INT8_ARRAY, TIMESTAMPTZ);
    Reclaim = include_str!("sql/reclaim.sql"), (INT4, INT8, INT4, TIMESTAMPTZ);
    DueChores = include_str!("sql/due_chores.sql"), (TIMESTAMPTZ);
    DoChore = include_str!("sql/do_chore.sql"), (TEXT, TIMESTAMPTZ);
    CutLeases = include_str!("sql/cut_leases.sql"), (INT4, TIMESTAMPTZ);
    CountUndue = include_str!("sql/count_undue.sql"), (INT4, INT2, TIMESTAMPTZ, INT8, INT4, TIMESTAMPTZ);
    Fold = include_str!("sql/fold.sql"), ();
    CheckTasks = include_str!("sql/check_tasks.sql"), (INT8, INT8);
    CheckCounts = include_str!("sql/check_counts.sql"), ();
    CheckPlaces = include_str!("sql/check_places.sql"), ();
    DiagnoseLoad = include_str!("sql/diagnose_load.sql"), ();
    DiagnoseObjects = include_str!("sql/diagnose_objects.sql"), (TEXT);
    DiagnoseSettings = include_str!("sql/diagnose_settings.sql"), ();
    DiagnoseStandbys = include_str!("sql/diagnose_standbys.sql"), ();
    DiagnoseSubjects = include_str!("sql/diagnose_subjects.sql"), ();
    DiagnoseTables = include_str!("sql/diagnose_tables.sql"), (TEXT);
    DiagnoseTransactions = include_str!("sql/diagnose_transactions.sql"), (TIMESTAMPTZ);
    Import = include_str!("sql/import.sql"), (TEXT, TEXT_ARRAY, BOOL_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, INT8, TIMESTAMPTZ);
    Find = include_str!("sql/find.sql"), (INT4, TEXT_ARRAY);
    Get = include_str!("sql/get.sql"), (INT8);
    ListOldest = include_str!("sql/list_oldest.sql"), (INT8, INT8, TEXT, INT4, TEXT, TEXT, TEXT, TEXT, INT4, TEXT_ARRAY);
    ListNewest = include_str!("sql/list_newest.sql"), (INT8, INT8, TEXT, INT4, TEXT, TEXT, TEXT, TEXT, INT4, TEXT_ARRAY);
    Operate = include_str!("sql/operate.sql"), (TEXT, INT8_ARRAY, TEXT, TEXT, TIMESTAMPTZ);
    Stats = include_str!("sql/stats.sql"), (TIMESTAMPTZ);
    Minutes = include_str!("sql/minutes.sql"), (INT4, TIMESTAMPTZ);
    Now = include_str!("sql/now.sql"), (TIMESTAMPTZ);
    QueueAll = include_str!("sql/queue_all.sql"), ();
    QueueByName = include_str!("sql/queue_by_name.sql"), (TEXT);
    QueueLock = include_str!("sql/queue_lock.sql"), ();
    QueueNumbers = include_str!("sql/queue_numbers.sql"), ();
    QueueSave = include_str!("sql/queue_save.sql"), (INT4, TEXT, TEXT, TEXT, BOOL, TEXT, TEXT, TIMESTAMPTZ);
    QueueInForce = include_str!("sql/queue_in_force.sql"), (INT4, TEXT);
    QueueStanding = include_str!("sql/queue_standing.sql"), (INT4);
    SubjectBind = include_str!("sql/subject_bind.sql"), (INT4, TEXT, TEXT, BOOL);
    ScheduleAll = include_str!("sql/schedule_all.sql"), ();
    ScheduleLock = include_str!("sql/schedule_lock.sql"), (TEXT);
    ScheduleSave = include_str!("sql/schedule_save.sql"), (TEXT, TEXT, BYTEA, BOOL, TEXT, TIMESTAMPTZ, TIMESTAMPTZ,
        INT8_ARRAY, TIMESTAMPTZ);
    ScheduleRemove = include_str!("sql/schedule_remove.sql"), (TEXT);
    ScheduleStanding = include_str!("sql/schedule_standing.sql"), (INT8_ARRAY);
    RoleEnsure = include_str!("sql/role_ensure.sql"), (TEXT, TIMESTAMPTZ);
    RoleGet = include_str!("sql/role_get.sql"), (TEXT);
    RoleSave = include_str!("sql/role_save.sql"), (TEXT, TEXT, INT8, TIMESTAMPTZ, INT8);
    WorkerSave = include_str!("sql/worker_save.sql"), (TEXT, TEXT, TIMESTAMPTZ);
    WorkerForget = include_str!("sql/worker_forget.sql"), (TEXT);
    WorkerAll = include_str!("sql/worker_all.sql"), ();
    AssignmentSave = include_str!("sql/assignment_save.sql"), (INT8, TEXT, TIMESTAMPTZ);
    AssignmentGet = include_str!("sql/assignment_get.sql"), ();
    Notify = include_str!("sql/notify.sql"), (TEXT, TEXT);
    MetaGet = include_str!("sql/meta_get.sql"), ();
    DefinitionStanding = include_str!("sql/definition_standing.sql"), ();
    DefinitionList = include_str!("sql/definition_list.sql"), ();
    DefinitionDefine = include_str!("sql/definition_define.sql"), (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BOOL_ARRAY);
    DefinitionRemember = include_str!("sql/definition_remember.sql"), (TEXT, INT4_ARRAY);
    RoleStanding = include_str!("sql/role_standing.sql"), (TEXT_ARRAY);
    MigrationTable = include_str!("sql/migration_table.sql"), ();
    MigrationLock = include_str!("sql/migration_lock.sql"), (TEXT);
    MigrationKnown = include_str!("sql/migration_known.sql"), (TEXT);
    MigrationList = include_str!("sql/migration_list.sql"), ();
    MigrationRecord = include_str!("sql/migration_record.sql"), (INT4, TEXT);
}
