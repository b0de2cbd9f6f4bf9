//! How long what is told of the past is kept: `keep: {audit: 90d,
//! operations: 7d, minutes: 7d}`.

use std::time::Duration;

use gristmill::port::policy::keeping;
use gristmill_contract::duration;
use gristmill_contract::yaml::{Fields, Mistakes, Node};

/// Shortest and longest time that can be said.
const LEAST: Duration = Duration::from_secs(24 * 3600);
const MOST: Duration = Duration::from_secs(3660 * 24 * 3600);

/// What was said about keeping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KeepConfig {
    /// The audit log.
    pub(crate) audit: Option<Duration>,
    /// Operations on all tasks that match, once they ended.
    pub(crate) operations: Option<Duration>,
    /// The minutes of queues. It is said to the store, and holds for all its processes.
    pub(crate) minutes: Option<Duration>,
}

/// Reads it.
pub(super) fn read(node: &Node, mistakes: &mut Mistakes) -> Option<KeepConfig> {
    let fields = Fields::of(node, "keep", mistakes)?;
    let mut time = |name: &str, most: Duration| {
        let at = fields.node(name)?;
        let said = duration::parse(&at.scalar().unwrap_or_default());
        let said = said.map_err(|why| mistakes.add(at, format!("{name}: {why}"))).ok()?;
        if !(LEAST..=most).contains(&said) {
            let (least, most) = (duration::show(LEAST), duration::show(most));
            mistakes.add(at, format!("{name}: from {least} to {most} is possible"));
            return None;
        }
        Some(said)
    };
    let (audit, operations) = (time("audit", MOST), time("operations", MOST));
    let minutes = time("minutes", keeping::MOST);
    fields.done(&["audit", "operations", "minutes"], mistakes);
    Some(KeepConfig { audit, operations, minutes })
}
