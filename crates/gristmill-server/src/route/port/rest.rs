//! The verbs that are for operators and for the system's own programs: an admin's, of
//! every queue. What operators do is written down under the names that it has elsewhere.

use gristmill_remote::wire::verbs;

use super::{answered, asked, done};
use crate::access::Caller;
use crate::audit::Deed;
use crate::call::Call;
use crate::problem::Answer;

/// A route that has the store do what was asked; before the arrow stands what of it is
/// checked or written down first.
macro_rules! does {
    ($($name:ident = $verb:ident |$store:ident, $asked:ident, $caller:ident| $first:expr => $doing:expr;)+) => {$(
        pub(crate) async fn $name(call: Call) -> Answer {
            let (service, $caller, $asked) = asked::<verbs::$verb>(call).await?;
            let first: Answer<()> = $first;
            first?;
            let $store = service.store.clone();
            let answer = done(&$caller, async move { $doing.await }).await?;
            if $caller.deed().action.starts_with("queues.") {
                service.known.forget();
            }
            answered::<verbs::$verb>(&service, &answer)
        }
    )+};
}

/// What is written down.
fn deed(
    caller: &Caller,
    action: &str,
    by: Option<&str>,
    target: Option<String>,
    queue: Option<String>,
) -> Answer<()> {
    caller.note(|deed| {
        let (action, by) = (action.to_owned(), by.map(str::to_owned));
        *deed = Deed { action, by, target, queue, ..Deed::default() };
    });
    Ok(())
}

fn on_queue(caller: &Caller, action: &str, by: Option<&str>, queue: impl ToString) -> Answer<()> {
    let name = Some(queue.to_string());
    deed(caller, action, by, name.clone(), name)
}

fn on_schedule(caller: &Caller, action: &str, by: Option<&str>, name: impl ToString) -> Answer<()> {
    deed(caller, action, by, Some(name.to_string()), None)
}

does! {
    operate = Operate |store, asked, caller|
        deed(&caller, &format!("tasks.{}", asked.action.as_str()), Some(&asked.by), None, None)
        => store.operate(asked);
    import = ImportTasks |store, asked, caller| Ok(()) => store.import(asked);
    declare_queue = DeclareQueue |store, asked, caller|
        on_queue(&caller, "queues.declare", None, &asked.name) => store.declare_queue(asked);
    override_queue = OverrideQueue |store, asked, caller|
        on_queue(&caller, "queues.change", Some(&asked.by), &asked.queue)
        => store.override_queue(&asked.queue, asked.settings, &asked.by);
    reset_queue = ResetQueue |store, asked, caller|
        on_queue(&caller, "queues.reset", Some(&asked.by), &asked.queue)
        => store.reset_queue(&asked.queue, &asked.by);
    pause_queue = SetQueuePaused |store, asked, caller|
        on_queue(
            &caller,
            if asked.paused { "queues.pause" } else { "queues.resume" },
            Some(&asked.by),
            &asked.queue,
        )
        => store.pause_queue(&asked.queue, asked.paused, &asked.by);
    register_contract = RegisterContract |store, asked, caller|
        on_queue(&caller, "queues.contract", None, &asked.queue) => store.register_contract(asked);
    declare_schedule = DeclareSchedule |store, asked, caller|
        on_schedule(&caller, "schedules.declare", None, &asked.name)
        => store.declare_schedule(asked);
    remove_schedule = RemoveSchedule |store, asked, caller|
        on_schedule(&caller, "schedules.remove", None, &asked.name)
        => store.remove_schedule(&asked.name);
    pause_schedule = SetSchedulePaused |store, asked, caller|
        on_schedule(
            &caller,
            if asked.paused { "schedules.pause" } else { "schedules.resume" },
            Some(&asked.by),
            &asked.name,
        )
        => store.pause_schedule(&asked.name, asked.paused, &asked.by);
    fire = FireSchedule |store, asked, caller|
        if asked.by_hand {
            on_schedule(&caller, "schedules.fire", None, &asked.schedule)
        } else {
            Ok(())
        }
        => store.fire(asked);
    endings = Endings |store, asked, caller| Ok(()) => store.endings(&asked.ids);
    diagnose = Diagnose |store, _asked, caller| Ok(()) => store.diagnose();
}
