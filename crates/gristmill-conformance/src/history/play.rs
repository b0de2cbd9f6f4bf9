//! Playing one history on two stores at once, and looking at both after each
//! step.

use std::sync::Arc;

use gristmill_core::memory::{MemoryOptions, MemoryStore};
use gristmill_core::{
    Declaration, Fair, Limits, ManualClock, OnDuplicate, Per, QueueStats, Rate, SettingsPatch,
    Task, Unique,
};
use gristmill_text::ControlPlane;

use super::call::make;
use super::resolve::{Past, declaration};
use super::seen::Seen;
use super::step::{QUEUES, Step};
use crate::handle::Handle;
use crate::shape::{name, secs};
use crate::{Harness, audit};

/// Plays the steps on the memory store and on a fresh store of the harness.
///
/// # Errors
/// Where they first differ, in words.
pub(super) async fn play(
    harness: &dyn Harness,
    steps: &[Step],
    seen: &mut Seen,
) -> Result<(), String> {
    let limits = Limits::default();
    let (clock, twin) = (Arc::new(ManualClock::default()), Arc::new(ManualClock::default()));
    let options =
        MemoryOptions { clock: clock.clone(), limits: limits.clone(), ..MemoryOptions::default() };
    let model = Handle::new(Arc::new(MemoryStore::new(options)), clock);
    let tested = Handle::new(harness.open(twin.clone(), limits).await, twin);
    for declaration in declarations() {
        let one = model.store.declare_queue(declaration.clone()).await;
        differ("declaring a queue", &one, &tested.store.declare_queue(declaration).await)?;
    }
    let schedule = || declaration(name(QUEUES[0]), true);
    let one = model.store.declare_schedule(schedule()).await;
    differ("declaring a schedule", &one, &tested.store.declare_schedule(schedule()).await)?;
    let mut past = Past::default();
    for (n, step) in steps.iter().enumerate() {
        let place = |what: &str| format!("step {} ({step:?}): {what}", n + 1);
        if let Step::Advance(by) = step {
            model.advance(*by);
            tested.advance(*by);
        } else if let Some(call) = past.call(step, &model.clock) {
            let one = make(model.store.as_ref(), call.clone()).await;
            let two = make(tested.store.as_ref(), call).await;
            differ(&place("its answer"), &one, &two)?;
            past.learn(&one);
            seen.note(&one);
        }
        let swept = matches!(step, Step::Sweep);
        look(&model, &tested, swept).await.map_err(|what| place(&what))?;
    }
    audit::audit(&tested).await;
    Ok(())
}

fn differ<T: PartialEq + std::fmt::Debug>(what: &str, model: &T, tested: &T) -> Result<(), String> {
    if model == tested {
        return Ok(());
    }
    Err(format!("{what} differs\n  memory store: {model:?}\n  store tested: {tested:?}"))
}

/// Compares everything that can be read.
async fn look(model: &Handle, tested: &Handle, swept: bool) -> Result<(), String> {
    let (one, two) = (model.all().await, tested.all().await);
    audit::slots(&two);
    let ids = |tasks: &[Task]| tasks.iter().map(|task| task.id).collect::<Vec<_>>();
    differ("the list of tasks", &ids(&one), &ids(&two))?;
    for (one, two) in one.into_iter().zip(two) {
        differ("a task", &plain_slot(one), &plain_slot(two))?;
    }
    let (one, two) = (model.store.stats().await, tested.store.stats().await);
    let (one, two) = (one.expect("stats"), two.expect("stats"));
    for (one, two) in one.into_iter().zip(two) {
        differ("a queue's numbers", &settled(one, swept), &settled(two, swept))?;
    }
    differ("the queues", &model.store.queues().await, &tested.store.queues().await)?;
    differ("the schedules", &model.store.schedules().await, &tested.store.schedules().await)?;
    differ("the workers", &model.store.workers().await, &tested.store.workers().await)?;
    differ("the assignment", &model.store.assignment().await, &tested.store.assignment().await)
}

fn plain_slot(mut task: Task) -> Task {
    if let Some(lease) = &mut task.lease {
        lease.slot = lease.slot.map(|_| 0);
    }
    task
}

/// Between sweeps the split of ready and delayed may lag.
fn settled(mut stats: QueueStats, swept: bool) -> QueueStats {
    if !swept {
        stats.ready += std::mem::take(&mut stats.delayed);
        stats.oldest_ready = None;
    }
    stats
}

/// One queue for each setting that matters; the last name stays undeclared.
fn declarations() -> Vec<Declaration> {
    let declared = QUEUES.iter().filter(|queue| **queue != "absent");
    declared
        .map(|queue| {
            let mut settings =
                SettingsPatch { max_attempts: Some(Some(2)), ..SettingsPatch::default() };
            match *queue {
                "replace" => settings.on_duplicate = Some(OnDuplicate::Replace),
                "postpone" => {
                    settings.on_duplicate = Some(OnDuplicate::Postpone);
                    settings.postpone_max = Some(Some(secs(100)));
                }
                "active" => settings.unique = Some(Unique::Active),
                "slots" => settings.slots = Some(Some(2)),
                "count" => settings.count = Some(true),
                "limited" => settings.concurrency = Some(Some(2)),
                "grouped" => {
                    settings.concurrency = Some(Some(1));
                    settings.concurrency_per = Some(Per::Group);
                }
                "throttled" => settings.unique_for = Some(Some(secs(90))),
                "fair" => settings.fair = Some(Fair::Group),
                "rated" => {
                    settings.rate = Some(Some(Rate::new(7, secs(60))));
                    settings.burst = Some(Some(3));
                }
                "paced" => {
                    settings.rate = Some(Some(Rate::new(1, secs(11))));
                    settings.rate_per = Some(Per::Group);
                }
                "bounded" => settings.capacity = Some(Some(4)),
                "kept" => {
                    settings.keep_done = Some(Some(secs(120)));
                    settings.keep_failed = Some(Some(secs(200)));
                    settings.id_window = Some(secs(300));
                }
                _ => {}
            }
            Declaration { settings, ..Declaration::new(name(queue)) }
        })
        .collect()
}
