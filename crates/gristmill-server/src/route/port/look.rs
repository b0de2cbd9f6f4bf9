//! The verbs that look: with the scope of the routes that do the same.

use gristmill::Task;
use gristmill::port::Page;
use gristmill_remote::wire::verbs;

use super::flow::woken;
use super::{answered, asked, failed};
use crate::access::Scope;
use crate::call::Call;
use crate::limits::PAGE_BYTES;
use crate::problem::{Answer, FORBIDDEN, Problem};

pub(crate) async fn find(call: Call) -> Answer {
    let (service, caller, find) = asked::<verbs::FindKeys>(call).await?;
    caller.expect_for(Scope::Read, &find.queue)?;
    let found = service.store.find(&find.queue, &find.keys).await;
    answered::<verbs::FindKeys>(&service, &found.map_err(|error| failed(&caller, error))?)
}

pub(crate) async fn get(call: Call) -> Answer {
    let (service, caller, one) = asked::<verbs::Get>(call).await?;
    let task = service.store.get(one.id).await.map_err(|error| failed(&caller, error))?;
    answered::<verbs::Get>(&service, &task.filter(|task| caller.sees(task)))
}

pub(crate) async fn list(call: Call) -> Answer {
    let (service, caller, request) = asked::<verbs::List>(call).await?;
    match &request.filter.queue {
        Some(queue) => caller.expect_for(Scope::Read, queue)?,
        None if caller.is_limited() => {
            let why = "this token is for some queues: name one of them";
            return Err(Problem::new(&FORBIDDEN, why).at("filter.queue"));
        }
        None => {}
    }
    let page = service.store.list(request).await.map_err(|error| failed(&caller, error))?;
    answered::<verbs::List>(&service, &cut(page))
}

/// The page up to the bytes that an answer may have, and where the next one begins.
fn cut(mut page: Page) -> Page {
    let mut held = 0;
    let bytes = |task: &Task| {
        task.payload.bytes.len() + task.checkpoint.as_ref().map_or(0, |kept| kept.len())
    };
    let fits = page.tasks.iter().take_while(|task| {
        held += bytes(task);
        held <= PAGE_BYTES
    });
    // One is told of, however large.
    let fits = fits.count().max(1);
    if fits < page.tasks.len() {
        page.tasks.truncate(fits);
        page.next = page.tasks.last().map(|task| task.id);
    }
    page
}

pub(crate) async fn stats(call: Call) -> Answer {
    let (service, caller, ()) = asked::<verbs::Stats>(call).await?;
    let mut stats = service.store.stats().await.map_err(|error| failed(&caller, error))?;
    stats.retain(|one| caller.reaches(&one.queue));
    answered::<verbs::Stats>(&service, &stats)
}

pub(crate) async fn minutes(call: Call) -> Answer {
    let (service, caller, asked) = asked::<verbs::Minutes>(call).await?;
    caller.expect_for(Scope::Read, &asked.queue)?;
    let minutes = service.store.minutes(&asked.queue, asked.back).await;
    answered::<verbs::Minutes>(&service, &minutes.map_err(|error| failed(&caller, error))?)
}

pub(crate) async fn schedules(call: Call) -> Answer {
    let (service, caller, ()) = asked::<verbs::Schedules>(call).await?;
    let mut schedules = service.store.schedules().await.map_err(|error| failed(&caller, error))?;
    schedules.retain(|schedule| caller.reaches(&schedule.declared.queue));
    answered::<verbs::Schedules>(&service, &schedules)
}

pub(crate) async fn wait_ended(call: Call) -> Answer {
    let (service, caller, asked) = asked::<verbs::WaitEnded>(call).await?;
    let woken = woken(&service, &caller, &asked.since, asked.timeout, |since, timeout| {
        let store = service.store.clone();
        async move { store.wait_ended(since, timeout).await }
    });
    answered::<verbs::WaitEnded>(&service, &woken.await?)
}

#[cfg(test)]
mod tests {
    use gristmill::port::Payload;
    use gristmill::{QueueName, TaskId, Timestamp};

    use super::*;

    #[test]
    fn a_page_ends_before_it_is_too_much() {
        let task = |id: i64, bytes: usize| {
            let queue = QueueName::new("q").expect("a name");
            Task::new(TaskId(id), queue, Payload::raw(vec![0; bytes]), Timestamp::EPOCH)
        };
        let page = |sizes: &[usize]| {
            let tasks = (1..).zip(sizes).map(|(id, bytes)| task(id, *bytes)).collect();
            let cut = cut(Page { tasks, next: Some(TaskId(99)), ..Page::default() });
            (cut.tasks.len(), cut.next)
        };
        assert_eq!(page(&[1, 2, 3]), (3, Some(TaskId(99))));
        assert_eq!(page(&[PAGE_BYTES, 1]), (1, Some(TaskId(1))));
        assert_eq!(page(&[PAGE_BYTES + 1, 1]), (1, Some(TaskId(1))));
        assert_eq!(page(&[]), (0, Some(TaskId(99))));
    }
}
