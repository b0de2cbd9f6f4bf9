//! Progress of long work: bars on standard error, only where somebody looks.

use indicatif::{ProgressBar, ProgressStyle};

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

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    // A template that cannot be read leaves the default look.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
