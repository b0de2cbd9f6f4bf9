//! How a store around another one forwards the verbs: all signatures of the port stand
//! here once more, and nowhere else.

/// Implements [`Store`](crate::Store) for a type by a macro of its own, which says what
/// a call becomes. It gets `self.verb(arguments)` where there is time, and
/// `now self.verb()` where an answer is due at once; arms that name a verb go before the
/// one for all others:
///
/// ```
/// # use std::sync::Arc;
/// # use gristmill_core::Store;
/// #[derive(Debug)]
/// struct Patient(Arc<dyn Store>);
///
/// macro_rules! patient {
///     (now $self:ident.$verb:ident()) => { $self.0.$verb() };
///     ($self:ident.reclaim()) => { Ok(0) };
///     ($self:ident.$verb:ident($($given:ident),*)) => { $self.0.$verb($($given),*).await };
/// }
///
/// gristmill_core::delegate_store!(Patient, patient);
/// ```
#[macro_export]
macro_rules! delegate_store {
    ($store:ty, $to:ident) => {
        $crate::delegate_store! { @verbs $store, $to;
            put(request: $crate::PutRequest) -> $crate::PutReport;
            claim(request: $crate::ClaimRequest) -> $crate::Claim;
            settle(settlements: Vec<$crate::Settlement>) -> Vec<$crate::SettleAnswer>;
            extend(extensions: Vec<$crate::Extension>) -> Vec<$crate::ExtendAnswer>;
            checkpoint(checkpoints: Vec<$crate::Checkpoint>) -> Vec<$crate::CheckpointAnswer>;
            endings(ids: &[$crate::TaskId]) -> Vec<$crate::Ending>;
            wait_ended(since: $crate::WakeMark, timeout: std::time::Duration) -> ();
            open_under(token: $crate::Token) -> Vec<$crate::TaskId>;
            reclaim() -> u64;
            sweep() -> $crate::SweepReport;
            reach() -> ();
            wait(
                queues: &[$crate::QueueName], since: $crate::WakeMark, timeout: std::time::Duration
            ) -> ();
            find(queue: &$crate::QueueName, keys: &[String]) -> Vec<$crate::KeyStanding>;
            get(id: $crate::TaskId) -> Option<$crate::Task>;
            list(request: $crate::ListRequest) -> $crate::Page;
            operate(operation: $crate::Operation) -> $crate::OperationReport;
            import(import: $crate::Import) -> Vec<$crate::ImportAnswer>;
            declare_queue(declaration: $crate::Declaration) -> $crate::Declared;
            override_queue(
                queue: &$crate::QueueName, settings: $crate::SettingsPatch, by: &str
            ) -> $crate::Declared;
            reset_queue(queue: &$crate::QueueName, by: &str) -> $crate::Declared;
            pause_queue(queue: &$crate::QueueName, paused: bool, by: &str) -> ();
            register_contract(change: $crate::ContractChange) -> $crate::ContractAnswer;
            queues() -> Vec<$crate::Queue>;
            stats() -> Vec<$crate::QueueStats>;
            minutes(queue: &$crate::QueueName, back: std::time::Duration) -> Vec<$crate::Minute>;
            declare_schedule(declaration: $crate::ScheduleDeclaration) -> $crate::Schedule;
            schedules() -> Vec<$crate::Schedule>;
            remove_schedule(name: &$crate::ScheduleName) -> bool;
            pause_schedule(name: &$crate::ScheduleName, paused: bool, by: &str) -> bool;
            fire(fire: $crate::Fire) -> $crate::FireAnswer;
            document(kind: &str, name: &str) -> Option<$crate::Document>;
            documents(list: $crate::DocumentList) -> Vec<$crate::Document>;
            save_document(change: $crate::DocumentChange) -> $crate::DocumentAnswer;
            diagnose() -> Vec<$crate::Diagnosis>;
            close() -> ();
        }
    };
    (@verbs $store:ty, $to:ident;
        $( $verb:ident($($given:ident: $of:ty),*) -> $answer:ty; )+
    ) => {
        #[async_trait::async_trait]
        impl $crate::Store for $store {
            $(
                async fn $verb(&self, $($given: $of),*) -> $crate::Result<$answer> {
                    $to!(self.$verb($($given),*))
                }
            )+

            fn mark(&self) -> $crate::WakeMark {
                $to!(now self.mark())
            }

            fn capabilities(&self) -> $crate::Capabilities {
                $to!(now self.capabilities())
            }

            fn limits(&self) -> &$crate::Limits {
                $to!(now self.limits())
            }

            fn flush_limit(&self) -> Option<usize> {
                $to!(now self.flush_limit())
            }
        }
    };
}
