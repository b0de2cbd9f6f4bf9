//! The verbs that move tasks: with the scopes of the routes that do the same, and as
//! careful about foreign queues.

use std::time::Instant;

use gristmill::StoreError;
use gristmill::port::{CheckpointAnswer, PutAnswer, SettleAnswer, SweepReport};
use gristmill::{Refusal, TaskId};
use gristmill_remote::wire::{Wire as _, Woken, verbs};

use super::{answered, asked, done, failed, mark, since};
use crate::access::{Caller, Scope};
use crate::call::Call;
use crate::leased::is_foreign;
use crate::problem::Answer;
use crate::route::claims::handed;
use crate::route::poll::Caught;
use crate::route::{extensions, settlements};
use crate::service::Service;

pub(crate) async fn put(call: Call) -> Answer {
    let (service, caller, request) = asked::<verbs::Put>(call).await?;
    caller.expect_for(Scope::Put, &request.queue)?;
    let store = service.store.clone();
    let report = done(&caller, async move { store.put(request).await }).await?;
    answered::<verbs::Put>(&service, &report)
}

/// A claim for somebody who may be gone when it is made: then it is given back.
pub(crate) async fn claim(call: Call) -> Answer {
    let (service, caller, request) = asked::<verbs::ClaimTasks>(call).await?;
    caller.expect_for(Scope::Work, &request.queue)?;
    let worker = request.worker.clone();
    service.sampled.saw(&worker, std::slice::from_ref(&request.queue));
    let claiming = service.clone();
    let claimed = done(&caller, async move {
        let claim = claiming.store.claim(request).await?;
        // Dropped unsent, it goes back.
        Ok(Caught::new(claiming, claim))
    });
    let caught = claimed.await?;
    if caller.is_limited() {
        service.leased.note(caught.claim().token, &caught.claim().queue);
    }
    let text = caught.claim().write().to_string();
    let mut response = handed(text.into(), caught.receipt());
    if let Ok(mark) = mark(&service).parse() {
        response.headers_mut().insert(gristmill_remote::wire::MARK_HEADER, mark);
    }
    Ok(response)
}

pub(crate) async fn settle(call: Call) -> Answer {
    let (service, caller, settlements) = asked::<verbs::Settle>(call).await?;
    settlements::expect_follow_ups(&caller, &settlements)?;
    let (of, by) = (service.clone(), caller.clone());
    let recorded =
        done(&caller, async move { settlements::record(&of, &by, settlements).await }).await?;
    let answers: Vec<SettleAnswer> =
        recorded.into_iter().map(|answer| without_names(&caller, answer)).collect();
    answered::<verbs::Settle>(&service, &answers)
}

/// Without names that were meant, perhaps: they may be foreign ones.
fn without_names(caller: &Caller, mut answer: SettleAnswer) -> SettleAnswer {
    if let (true, SettleAnswer::Recorded { follow_ups, .. }) = (caller.is_limited(), &mut answer) {
        for follow_up in follow_ups {
            if let PutAnswer::Refused(Refusal::UnknownQueue { suggestion, .. }) = follow_up {
                *suggestion = None;
            }
        }
    }
    answer
}

pub(crate) async fn extend(call: Call) -> Answer {
    let (service, caller, extensions) = asked::<verbs::Extend>(call).await?;
    let (of, by) = (service.clone(), caller.clone());
    let answers =
        done(&caller, async move { extensions::prolonged(&of, &by, &extensions).await }).await?;
    answered::<verbs::Extend>(&service, &answers)
}

pub(crate) async fn checkpoint(call: Call) -> Answer {
    let (service, caller, checkpoints) = asked::<verbs::KeepCheckpoints>(call).await?;
    let (of, by) = (service.clone(), caller.clone());
    let kept = done(&caller, async move {
        let (mut ours, mut whose) = (Vec::new(), Vec::with_capacity(checkpoints.len()));
        for checkpoint in checkpoints {
            let foreign = is_foreign(&of, &by, checkpoint.token).await?;
            whose.push((checkpoint.id, foreign));
            if !foreign {
                ours.push(checkpoint);
            }
        }
        let mut answers = of.store.checkpoint(ours).await?.into_iter();
        let mut each = Vec::with_capacity(whose.len());
        for (id, foreign) in whose {
            let answer = if foreign { None } else { answers.next() };
            let lost = answer == Some(CheckpointAnswer::LeaseLost);
            let hidden = lost && settlements::is_hidden(&of, &by, id).await?;
            // As if neither the task nor the lease were there.
            each.push(answer.filter(|_| !hidden).unwrap_or(CheckpointAnswer::Gone));
        }
        Ok(each)
    });
    answered::<verbs::KeepCheckpoints>(&service, &kept.await?)
}

pub(crate) async fn open_under(call: Call) -> Answer {
    let (service, caller, under) = asked::<verbs::OpenUnder>(call).await?;
    let foreign = is_foreign(&service, &caller, under.token).await;
    let open = match foreign {
        Ok(true) => Ok(Vec::new()),
        Ok(false) => service.store.open_under(under.token).await,
        Err(error) => Err(error),
    };
    answered::<verbs::OpenUnder>(&service, &open.map_err(|error| failed(&caller, error))?)
}

pub(crate) async fn wait(call: Call) -> Answer {
    let (service, caller, asked) = asked::<verbs::WaitForWork>(call).await?;
    for (at, queue) in asked.queues.iter().enumerate() {
        let theirs = caller.expect_for(Scope::Work, queue);
        theirs.map_err(|problem| problem.at(format!("queues[{at}]")))?;
    }
    let woken = woken(&service, &caller, &asked.since, asked.timeout, |since, timeout| {
        let (store, queues) = (service.store.clone(), asked.queues.clone());
        async move { store.wait(&queues, since, timeout).await }
    });
    answered::<verbs::WaitForWork>(&service, &woken.await?)
}

/// Waits for something that the store tells, no longer than a request may, and for as
/// long as the service runs.
pub(super) async fn woken<F>(
    service: &Service,
    caller: &Caller,
    said: &str,
    timeout: std::time::Duration,
    waits: impl FnOnce(gristmill::port::WakeMark, std::time::Duration) -> F,
) -> Answer<Woken>
where
    F: Future<Output = Result<(), StoreError>>,
{
    // Of a mark of an earlier service nothing is known: whoever asks has to look.
    let Some(since) = since(service, said) else { return Ok(Woken { woken: true }) };
    let _place = service.waiter()?;
    let (timeout, begun) = (timeout.min(service.store.limits().wait), Instant::now());
    tokio::select! {
        waited = waits(since, timeout) => waited.map_err(|error| failed(caller, error))?,
        () = service.stops() => {}
    }
    // It may have waited for a minute, and the token been revoked meanwhile.
    service.door.still_takes(caller).await?;
    Ok(Woken { woken: begun.elapsed() < timeout })
}

pub(crate) async fn reclaim(call: Call) -> Answer {
    let (service, caller, ()) = asked::<verbs::Reclaim>(call).await?;
    let store = service.store.clone();
    let reclaimed = done(&caller, async move { store.reclaim().await }).await?;
    // How many there were of queues that are not theirs is not theirs to know.
    let told = if caller.is_limited() { 0 } else { reclaimed };
    answered::<verbs::Reclaim>(&service, &told)
}

pub(crate) async fn sweep(call: Call) -> Answer {
    let (service, caller, ()) = asked::<verbs::Sweep>(call).await?;
    let store = service.store.clone();
    let report = done(&caller, async move { store.sweep().await }).await?;
    let told = if caller.is_limited() {
        let mut failed: Vec<TaskId> = Vec::new();
        for id in report.failed {
            let task = service.store.get(id).await?;
            failed.extend(task.filter(|task| caller.sees(task)).map(|task| task.id));
        }
        SweepReport { failed, quiet: report.quiet, ..SweepReport::default() }
    } else {
        report
    };
    answered::<verbs::Sweep>(&service, &told)
}

pub(crate) async fn reach(call: Call) -> Answer {
    let (service, caller, ()) = asked::<verbs::Reach>(call).await?;
    service.store.reach().await.map_err(|error| failed(&caller, error))?;
    answered::<verbs::Reach>(&service, &())
}

/// The settings that a worker goes by, of the queues that are the caller's.
pub(crate) async fn queues(call: Call) -> Answer {
    let (service, caller, ()) = asked::<verbs::Queues>(call).await?;
    let mut queues = service.store.queues().await.map_err(|error| failed(&caller, error))?;
    queues.retain(|queue| caller.reaches(&queue.name));
    answered::<verbs::Queues>(&service, &queues)
}
