//! Progress of long work: bars on standard error, only where somebody looks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tokio::runtime::Handle;

/// Nobody wants to see any.
static QUIET: AtomicBool = AtomicBool::new(false);

/// A bar is up already.
static UP: AtomicBool = AtomicBool::new(false);

/// After so long somebody wonders what goes on.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows no progress from now on.
pub(crate) fn hush() {
    QUIET.store(true, Ordering::Relaxed);
}

/// A bar over a file of known size.
pub(crate) fn bytes(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    late(styled(bar, "{wide_bar} {bytes}/{total_bytes} {msg} ({eta} left)"))
}

/// A bar over tasks whose number is told as it becomes known.
pub(crate) fn tasks() -> ProgressBar {
    late(styled(ProgressBar::new(0), "{wide_bar} {human_pos}/{human_len} tasks ({eta} left)"))
}

/// A bar over so many tasks.
pub(crate) fn of_tasks(total: u64) -> ProgressBar {
    let bar = tasks();
    bar.set_length(total);
    bar
}

/// A count without a known end.
pub(crate) fn steps(what: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what.to_owned());
    late(styled(bar, "{spinner} {msg} {human_pos} ({rate}/s)"))
}

/// Something that takes a while, nobody knows how long.
pub(crate) fn looking(what: &'static str) -> ProgressBar {
    turning(late(spinner(what)))
}

fn spinner(what: &'static str) -> ProgressBar {
    UP.store(true, Ordering::Relaxed);
    styled(ProgressBar::new_spinner().with_message(what), "{spinner} {msg} ({elapsed})")
}

fn turning(bar: ProgressBar) -> ProgressBar {
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Something that is quick as a rule: told of when it is not.
pub(crate) async fn if_slow<T>(what: &'static str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(PATIENCE, &mut work).await {
        return done;
    }
    // Two bars would write over each other.
    let bar = (!UP.load(Ordering::Relaxed)).then(|| turning(spinner(what)));
    let done = work.await;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    done
}

/// Seen only once somebody wonders: what is over before then never flickers.
fn late(bar: ProgressBar) -> ProgressBar {
    if let Ok(runtime) = Handle::try_current() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let hidden = bar.downgrade();
        runtime.spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            let waiting = hidden.upgrade().filter(|bar| !bar.is_finished());
            if let Some(bar) = waiting.filter(|_| !QUIET.load(Ordering::Relaxed)) {
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.tick();
            }
        });
    }
    bar
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    if QUIET.load(Ordering::Relaxed) {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    // A template that cannot be read leaves the default look.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.with_key("rate", rate)),
        Err(_) => bar,
    }
}

/// Whole steps a second: nobody reads the rest.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // What cannot be written is not seen.
    let _ = write!(out, "{:.0}", state.per_sec());
}
