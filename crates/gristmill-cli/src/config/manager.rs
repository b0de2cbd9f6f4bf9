//! The manager in the configuration: `manager: true`, or with more said.

use std::time::Duration;

use gristmill::manager::EVERY_MAX;

use gristmill_contract::duration;
use gristmill_contract::yaml::{Fields, Mistakes, Node, Value};

/// Shortest time between two decisions.
const EVERY_MIN: Duration = Duration::from_millis(100);

/// What was said about the manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManagerConfig {
    pub(crate) on: bool,
    /// Processors that all queues share; the sum of theirs unless said.
    pub(crate) processors: Option<usize>,
    /// How often it decides.
    pub(crate) every: Option<Duration>,
}

/// Reads it.
pub(super) fn read(node: &Node, most: u64, mistakes: &mut Mistakes) -> Option<ManagerConfig> {
    let plain = |on| Some(ManagerConfig { on, processors: None, every: None });
    match &node.value {
        Value::Bool(on) => return plain(*on),
        Value::Map(_) => {}
        _ => {
            mistakes.add(node, "manager is true, false, or fields like {every: 2s}".to_owned());
            return None;
        }
    }
    let mut fields = Fields::of(node, "the manager", mistakes)?;
    let processors = fields.number("processors", 1..=most, mistakes);
    let every = fields.node("every").and_then(|at| {
        let every = duration::parse(&at.scalar().unwrap_or_default());
        let every = every.map_err(|why| mistakes.add(at, format!("every: {why}"))).ok()?;
        if !(EVERY_MIN..=EVERY_MAX).contains(&every) {
            let (least, most) = (duration::show(EVERY_MIN), duration::show(EVERY_MAX));
            mistakes.add(at, format!("every: from {least} to {most} is possible"));
            return None;
        }
        Some(every)
    });
    fields.done(&["processors", "every"], mistakes);
    let processors = processors.and_then(|number| usize::try_from(number).ok());
    Some(ManagerConfig { on: true, processors, every })
}
