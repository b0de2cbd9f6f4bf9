//! How long what is told of the past is kept: `keep: {audit: 90d}`.

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
}

/// Reads it.
pub(super) fn read(node: &Node, mistakes: &mut Mistakes) -> Option<KeepConfig> {
    let fields = Fields::of(node, "keep", mistakes)?;
    let audit = fields.node("audit").and_then(|at| {
        let said = duration::parse(&at.scalar().unwrap_or_default());
        let said = said.map_err(|why| mistakes.add(at, format!("audit: {why}"))).ok()?;
        if !(LEAST..=MOST).contains(&said) {
            let (least, most) = (duration::show(LEAST), duration::show(MOST));
            mistakes.add(at, format!("audit: from {least} to {most} is possible"));
            return None;
        }
        Some(said)
    });
    fields.done(&["audit"], mistakes);
    Some(KeepConfig { audit })
}
