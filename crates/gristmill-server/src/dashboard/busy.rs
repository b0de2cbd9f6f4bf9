//! How busy processors are: how many of them hold a task, as words and as a small picture.

use gristmill::port::WorkerReport;
use maud::{Markup, html};

use super::words::number;

/// The width of the picture.
const WIDTH: u64 = 36;

/// Processors, and those of them that held something when they were last heard of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Busy {
    pub(crate) busy: u64,
    pub(crate) all: u64,
}

impl Busy {
    /// Those of one worker.
    pub(crate) fn of(report: &WorkerReport) -> Self {
        let busy = report.processors.iter().filter(|one| one.holding > 0).count() as u64;
        Busy { busy, all: report.processors.len() as u64 }
    }

    pub(crate) const fn add(&mut self, other: Busy) {
        self.busy += other.busy;
        self.all += other.all;
    }

    /// In a hundred; nothing where there is no processor.
    pub(crate) const fn percent(self) -> Option<u64> {
        (self.busy * 100).checked_div(self.all)
    }

    /// The share, with its picture.
    pub(crate) fn shown(self) -> Markup {
        html! {
            @match self.percent() {
                Some(percent) => { (self.picture()) (percent) " %" }
                None => { span.zero { "–" } }
            }
        }
    }

    /// A bar, as far as they are busy; nothing where there is no processor.
    pub(crate) fn picture(self) -> Markup {
        let (busy, all) = (number(self.busy), number(self.all));
        let words = format!("{busy} of {all} held a task when they were last heard of");
        html! {
            @if let Some(on) = (self.busy * WIDTH).checked_div(self.all) {
                svg.busy viewBox=(format!("0 0 {WIDTH} 6")) width=(WIDTH) height="6" role="img" aria-label=(words) {
                    title { (words) }
                    rect width=(WIDTH) height="6" rx="3" {}
                    @if on > 0 { rect.on width=(on.max(6)) height="6" rx="3" {} }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_told_of_who_is_there() {
        let mut all = Busy { busy: 1, all: 4 };
        assert_eq!(all.percent(), Some(25));
        all.add(Busy { busy: 2, all: 2 });
        assert_eq!(all, Busy { busy: 3, all: 6 });
        let shown = all.shown().into_string();
        assert!(shown.contains("3 of 6 held a task") && shown.contains("50 %"), "{shown}");
        assert!(!shown.contains("style="), "{shown}");
        assert_eq!(Busy::default().percent(), None);
    }
}
