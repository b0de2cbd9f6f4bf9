//! What stands: the queues' numbers, and the items with what was found out.

use std::io::{self, Write};

use gristmill::QueueStats;

use crate::db::Shown;
use crate::notice::money;

/// Items that are shown.
pub(crate) const ITEMS: u32 = 50;

/// Writes both tables.
pub(crate) fn show(out: &mut dyn Write, queues: &[QueueStats], items: &[Shown]) -> io::Result<()> {
    writeln!(
        out,
        "{:<14} {:>6} {:>8} {:>11} {:>7} {:>6}",
        "queue", "ready", "delayed", "processing", "failed", "done"
    )?;
    for queue in queues {
        writeln!(
            out,
            "{:<14} {:>6} {:>8} {:>11} {:>7} {:>6}",
            queue.queue.as_str(),
            queue.ready,
            queue.delayed,
            queue.processing,
            queue.failed,
            queue.counters.done
        )?;
    }
    writeln!(out, "\n{:>8}  {:<24} {:>10}  {:<8} anomalies", "item", "name", "price", "trend")?;
    for item in items {
        let price = item.price_cents.map_or_else(|| "-".to_owned(), money);
        let direction = item.direction.as_deref().unwrap_or("-");
        let Shown { id, name, anomalies, .. } = item;
        writeln!(out, "{id:>8}  {name:<24} {price:>10}  {direction:<8} {anomalies}")?;
    }
    if items.len() >= ITEMS as usize {
        writeln!(out, "(the first {ITEMS} items)")?;
    }
    Ok(())
}
