//! How long what is told of the past is kept: `keep: {audit: 90d, operations: 7d}`.

use std::time::Duration;

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
}

/// Reads it.
pub(super) fn read(node: &Node, mistakes: &mut Mistakes) -> Option<KeepConfig> {
    let fields = Fields::of(node, "keep", mistakes)?;
    let mut time = |name: &str| {
        let at = fields.node(name)?;
        let said = duration::parse(&at.scalar().unwrap_or_default());
        let said = said.map_err(|why| mistakes.add(at, format!("{name}: {why}"))).ok()?;
        if !(LEAST..=MOST).contains(&said) {
            let (least, most) = (duration::show(LEAST), duration::show(MOST));
            mistakes.add(at, format!("{name}: from {least} to {most} is possible"));
            return None;
        }
        Some(said)
    };
    let (audit, operations) = (time("audit"), time("operations"));
    fields.done(&["audit", "operations"], mistakes);
    Some(KeepConfig { audit, operations })
}
