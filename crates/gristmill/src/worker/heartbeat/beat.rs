//! What the heartbeat's thread does, side by side: a sweep that takes its time,
//! or a store that does not answer, holds neither a lease nor a stop up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::policy::reclaim_guard::heartbeat as interval;
use gristmill_core::{ExtendAnswer, Extension, Store, StoreError, TaskId, WakeMark};
use tokio::sync::watch;

use crate::Mill;
use crate::outage::{Outage, Part};
use crate::worker::control::stop::Stop;
use crate::worker::heartbeat::lease::{Cancel, Lease};
use crate::worker::heartbeat::{Event, Shared};

/// How often the store is swept.
const SWEEP: Duration = Duration::from_secs(1);
/// How often it is looked at least whether leases ran out: the machine may sleep
/// meanwhile, and timers with it.
pub(crate) const LOOKS: Duration = Duration::from_secs(1);
/// How often the store is told at most how far tasks are.
const TELLS: Duration = Duration::from_secs(1);
/// How soon it is tried again to extend leases.
const SOON: Duration = Duration::from_millis(500);
/// How long the store may take to extend leases: others wait behind these.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The least time for an answer, however little is left of a lease.
const ANSWER_LEAST: Duration = Duration::from_millis(100);

/// Beats until it is told to end, or nobody is left to tell it.
pub(crate) async fn beat(
    mill: Mill,
    shared: Arc<Shared>,
    stop: Arc<Stop>,
    mut end: watch::Receiver<bool>,
) {
    shared.answered();
    let store = mill.store();
    tokio::select! {
        () = extend_in_time(&*store, mill.outage(), &shared) => {}
        () = sweep_each_second(&*store, mill.outage(), &shared) => {}
        () = end_in_time(&shared) => {}
        // What is left then is left to whoever claims it next.
        () = stop.keep_time() => {}
        _ = end.wait_for(|end| *end) => {}
    }
}

async fn extend_in_time(store: &dyn Store, outage: &Outage, shared: &Shared) {
    loop {
        let due = due(shared, shared.timer.now());
        if !due.failing {
            // Also when those that failed ran out: nothing will tell of them.
            outage.answered(Part::Leases, &shared.timer);
        }
        if let Some(within) = due.within {
            extend(store, outage, shared, due.extensions, within).await;
            continue;
        }
        tokio::select! {
            () = shared.timer.sleep_until(due.until) => {}
            () = shared.changed.notified() => {}
        }
    }
}

async fn sweep_each_second(store: &dyn Store, outage: &Outage, shared: &Shared) {
    // Until when there is nothing to sweep, unless somebody was woken since then.
    let mut quiet: Option<(Instant, WakeMark)> = None;
    loop {
        shared.timer.sleep(SWEEP).await;
        let (now, mark) = (shared.timer.now(), store.mark());
        let is_quiet = quiet.is_some_and(|(until, since)| now < until && mark == since);
        // Whether it is there is known within a second all the same.
        let asked = if is_quiet {
            store.reach().await.map(|()| None)
        } else {
            store.sweep().await.map(Some)
        };
        match asked {
            Ok(report) => {
                outage.answered(Part::Sweeps, &shared.timer);
                shared.answered();
                if let Some(report) = report {
                    shared.note_failed(&report.failed);
                    shared.note_oldest(report.oldest_transaction);
                    quiet = report.quiet.map(|quiet| (now + quiet, mark));
                }
            }
            Err(error) => {
                quiet = None;
                outage.failed(Part::Sweeps, &error, shared.timer.now());
            }
        }
    }
}

/// What is to be extended now, how long that may take, and when to look next.
struct Due {
    extensions: Vec<Extension>,
    /// None when there is nothing to extend.
    within: Option<Duration>,
    until: Instant,
    /// One of those held was not extended at the last try.
    failing: bool,
    /// There is news of how far tasks are among them.
    tells: bool,
}

/// The leases to extend now. When none is held it looks again in a while, since
/// one that is taken up says so.
fn due(shared: &Shared, now: Instant) -> Due {
    let clock = shared.clock();
    let mut beats = shared.lock();
    let until = now + SWEEP;
    let tells_at = beats.tells.unwrap_or(now);
    let tells = tells_at <= now;
    let mut due = Due { extensions: Vec::new(), within: None, until, failing: false, tells: false };
    beats.held.retain(|token, held| {
        let Some(lease) = held.lease.upgrade() else { return false };
        let (is_due, is_news) = (held.next <= now, lease.news.is_any());
        if is_due || (is_news && tells) {
            if lease.is_worth_extending(now) {
                let left = (held.sent + held.length).saturating_sub(clock);
                let least = due.within.unwrap_or(ANSWER_WITHIN);
                due.within = Some(least.min(left).max(ANSWER_LEAST));
                // News wait for no beat: they are an extension of their own, for all
                // leases at once and at most one a second.
                let progress = if tells { lease.news.take() } else { Vec::new() };
                due.tells |= !progress.is_empty();
                due.extensions.push(Extension { token: *token, lease: held.length, progress });
                held.told = false;
            } else if is_due {
                // Its handler may return after all, and somebody look after it.
                held.next = now + interval(held.length);
                if !std::mem::replace(&mut held.told, true) {
                    shared.note(Event::NotWorthExtending { open: lease.open() });
                }
            }
        }
        due.until = due.until.min(held.next);
        if is_news && !tells {
            due.until = due.until.min(tells_at);
        }
        due.failing |= held.failing;
        true
    });
    if due.tells {
        beats.tells = Some(now + TELLS);
    }
    beats.until = Some(due.until);
    due
}

async fn extend(
    store: &dyn Store,
    outage: &Outage,
    shared: &Shared,
    due: Vec<Extension>,
    within: Duration,
) {
    // Before it is sent: the store cannot count from an earlier moment.
    let sent = shared.clock();
    let late = || StoreError::unknown(format!("leases were not extended within {within:?}"));
    let extended = shared.timer.within(within, store.extend(due.clone())).await;
    let answers = match extended.unwrap_or_else(|| Err(late())) {
        Ok(answers) => answers,
        Err(error) => {
            // The store is away: try again soon. What is not extended in time
            // ends by itself.
            let now = shared.timer.now();
            outage.failed(Part::Leases, &error, now);
            let mut beats = shared.lock();
            for extension in due {
                if let Some(held) = beats.held.get_mut(&extension.token) {
                    if let Some(lease) = held.lease.upgrade() {
                        lease.news.put_back(&extension.progress);
                    }
                    held.failing = true;
                    held.next = now + SOON.min(interval(held.length));
                }
            }
            return;
        }
    };
    shared.answered();
    let now = shared.timer.now();
    let mut beats = shared.lock();
    for (extension, answer) in due.into_iter().zip(answers) {
        let Some(open) = beats.held.get_mut(&extension.token) else { continue };
        open.next = now + interval(open.length);
        open.failing = false;
        let Some(lease) = open.lease.upgrade() else { continue };
        match answer {
            ExtendAnswer::Extended { cancelled, lost } => {
                open.sent = sent;
                tell(&lease, &cancelled, Cancel::Operator);
                tell(&lease, &lost, Cancel::LeaseLost);
            }
            ExtendAnswer::LeaseLost => {
                lease.lost();
                beats.held.remove(&extension.token);
            }
        }
    }
}

fn tell(lease: &Lease, ids: &[TaskId], why: Cancel) {
    for id in ids {
        lease.cancel(*id, why);
    }
}

/// Ends leases here when their time has passed since they were last confirmed:
/// by then the store may have given their tasks to somebody else, whether or not
/// it says so.
async fn end_in_time(shared: &Shared) {
    loop {
        let next = end_what_ran_out(shared);
        tokio::select! {
            () = shared.timer.sleep(next) => {}
            () = shared.shorter.notified() => {}
        }
    }
}

/// Returns how long to wait until the next one may run out.
fn end_what_ran_out(shared: &Shared) -> Duration {
    let now = shared.clock();
    let mut next = LOOKS;
    shared.lock().held.retain(|_, held| {
        let Some(lease) = held.lease.upgrade() else { return false };
        let left = (held.sent + held.length).saturating_sub(now);
        if left.is_zero() {
            shared.note(Event::RanOut { open: lease.open() });
            lease.lost();
            return false;
        }
        next = next.min(left);
        true
    });
    next
}
