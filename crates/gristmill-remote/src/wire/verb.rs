//! The verbs: what each is asked with, what it answers, and whether it may be asked again
//! when no answer came.

use std::time::Duration;

use gristmill_core::{
    Checkpoint, CheckpointAnswer, Claim, ClaimRequest, ContractAnswer, ContractChange, Declaration,
    Declared, Diagnosis, Document, DocumentAnswer, DocumentChange, DocumentList, Ending,
    ExtendAnswer, Extension, Fire, FireAnswer, Import, ImportAnswer, KeyStanding, ListRequest,
    Minute, Operation, OperationReport, Page, PutReport, PutRequest, Queue, QueueName, QueueStats,
    Schedule, ScheduleDeclaration, ScheduleName, SettingsPatch, SettleAnswer, Settlement,
    SweepReport, Task, TaskId, Token,
};

use super::Wire;

/// What an answer that did not come leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Nothing: it only looks. It may be asked again.
    Looks,
    /// Whether it happened; but twice is as once, and it may be asked again.
    Harmless,
    /// Whether it happened.
    Once,
}

/// A verb of the port.
pub trait Verb {
    /// What it is asked with.
    type Asked: Wire;
    /// What it answers.
    type Answer: Wire;
    /// Its name, which is also the end of its path.
    const NAME: &'static str;
    /// See [`Repeat`].
    const REPEAT: Repeat;
}

macro_rules! asked {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $( #[doc = concat!("`", stringify!($field), "` of the verb.")] pub $field: $type, )+
        }
        record!($name { $($field),+ });
    )+};
}

asked! {
    /// What `endings` and `get` are asked with.
    Ids { ids: Vec<TaskId> }
    /// What `open_under` is asked with.
    Under { token: Token }
    /// What `wait` and `wait_ended` are asked with; `since` as the service said it.
    Wait { queues: Vec<QueueName>, since: String, timeout: Duration }
    /// Whether a wait ended before its time.
    Woken { woken: bool }
    /// What `find` is asked with.
    Find { queue: QueueName, keys: Vec<String> }
    /// What `get` is asked with.
    One { id: TaskId }
    /// What `override_queue` is asked with.
    Change { queue: QueueName, settings: SettingsPatch, by: String }
    /// What `reset_queue` is asked with.
    Reset { queue: QueueName, by: String }
    /// What `pause_queue` is asked with.
    PauseQueue { queue: QueueName, paused: bool, by: String }
    /// What `minutes` is asked with.
    Back { queue: QueueName, back: Duration }
    /// What `remove_schedule` is asked with.
    Named { name: ScheduleName }
    /// What `pause_schedule` is asked with.
    PauseSchedule { name: ScheduleName, paused: bool, by: String }
    /// What `document` is asked with.
    Which { kind: String, name: String }
}

macro_rules! verbs {
    ($( $verb:ident = $name:literal ($asked:ty) -> $answer:ty, $repeat:ident; )+) => {
        $(
            #[doc = concat!("`", $name, "` of the port.")]
            #[derive(Debug)]
            pub enum $verb {}

            impl Verb for $verb {
                type Asked = $asked;
                type Answer = $answer;
                const NAME: &'static str = $name;
                const REPEAT: Repeat = Repeat::$repeat;
            }
        )+

        /// The names of all of them.
        pub const VERBS: &[&str] = &[$($name),+];
    };
}

/// The verbs as types.
pub mod verbs {
    use super::*;

    verbs! {
        Put = "put" (PutRequest) -> PutReport, Once;
        ClaimTasks = "claim" (ClaimRequest) -> Claim, Once;
        Settle = "settle" (Vec<Settlement>) -> Vec<SettleAnswer>, Once;
        Extend = "extend" (Vec<Extension>) -> Vec<ExtendAnswer>, Harmless;
        KeepCheckpoints = "checkpoint" (Vec<Checkpoint>) -> Vec<CheckpointAnswer>, Harmless;
        Endings = "endings" (Ids) -> Vec<Ending>, Looks;
        WaitEnded = "wait_ended" (Wait) -> Woken, Looks;
        OpenUnder = "open_under" (Under) -> Vec<TaskId>, Looks;
        Reclaim = "reclaim" (()) -> u64, Harmless;
        Sweep = "sweep" (()) -> SweepReport, Harmless;
        Reach = "reach" (()) -> (), Looks;
        WaitForWork = "wait" (Wait) -> Woken, Looks;
        FindKeys = "find" (Find) -> Vec<KeyStanding>, Looks;
        Get = "get" (One) -> Option<Task>, Looks;
        List = "list" (ListRequest) -> Page, Looks;
        Operate = "operate" (Operation) -> OperationReport, Once;
        ImportTasks = "import" (Import) -> Vec<ImportAnswer>, Once;
        DeclareQueue = "declare_queue" (Declaration) -> Declared, Once;
        OverrideQueue = "override_queue" (Change) -> Declared, Once;
        ResetQueue = "reset_queue" (Reset) -> Declared, Once;
        SetQueuePaused = "pause_queue" (PauseQueue) -> (), Harmless;
        RegisterContract = "register_contract" (ContractChange) -> ContractAnswer, Once;
        Queues = "queues" (()) -> Vec<Queue>, Looks;
        Stats = "stats" (()) -> Vec<QueueStats>, Looks;
        Minutes = "minutes" (Back) -> Vec<Minute>, Looks;
        DeclareSchedule = "declare_schedule" (ScheduleDeclaration) -> Schedule, Harmless;
        Schedules = "schedules" (()) -> Vec<Schedule>, Looks;
        RemoveSchedule = "remove_schedule" (Named) -> bool, Once;
        SetSchedulePaused = "pause_schedule" (PauseSchedule) -> bool, Harmless;
        FireSchedule = "fire" (Fire) -> FireAnswer, Once;
        OneDocument = "document" (Which) -> Option<Document>, Looks;
        Documents = "documents" (DocumentList) -> Vec<Document>, Looks;
        SaveDocument = "save_document" (DocumentChange) -> DocumentAnswer, Once;
        Diagnose = "diagnose" (()) -> Vec<Diagnosis>, Looks;
    }
}
