//! Progress of long work: bars on standard error, only where somebody looks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Nobody wants to see any.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Shows no progress from now on.
pub(crate) fn hush() {
    QUIET.store(true, Ordering::Relaxed);
}

/// A bar over a file of known size.
pub(crate) fn bytes(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    styled(bar, "{wide_bar} {bytes}/{total_bytes} {msg} ({eta} left)")
}

/// A bar over tasks whose number is told as it becomes known.
pub(crate) fn tasks() -> ProgressBar {
    styled(ProgressBar::new(0), "{wide_bar} {human_pos}/{human_len} tasks ({eta} left)")
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
    styled(bar, "{spinner} {msg} {human_pos} ({per_sec})")
}

/// Something that takes a while, nobody knows how long.
pub(crate) fn looking(what: &'static str) -> ProgressBar {
    let bar = styled(ProgressBar::new_spinner().with_message(what), "{spinner} {msg} ({elapsed})");
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    if QUIET.load(Ordering::Relaxed) {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    // A template that cannot be read leaves the default look.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
