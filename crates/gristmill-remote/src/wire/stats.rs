//! Numbers, and what a sweep and a look at a store found.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use gristmill_core::{Counters, Diagnosis, Minute, QueueStats, SweepReport, Waits};
use serde_json::{Map, Value};

use super::{Read, Wire, fields, say, take};

growing!(QueueStats = QueueStats::new { queue, number } {
    ready,
    delayed,
    blocked,
    processing,
    failed,
    done_kept,
    oldest_ready,
    paused,
    capacity,
    counters,
});
growing!(Minute = Minute::new { at } { put, done, failed, waits });

/// By bucket; what the other end does not say is nothing.
impl Wire for Waits {
    fn write(&self) -> Value {
        Value::from(self.0.to_vec())
    }

    fn read(value: Value) -> Read<Self> {
        let said = Option::<Vec<u64>>::read(value)?.unwrap_or_default();
        let mut waits = Waits::default();
        for (n, read) in waits.0.iter_mut().zip(said) {
            *n = read;
        }
        Ok(waits)
    }
}
record!(SweepReport {
    reclaimed,
    failed,
    promoted,
    unblocked,
    put_again,
    without_subject,
    forgotten_ids,
    pruned_done,
    pruned_failed,
    forgotten_endings,
    forgotten_documents,
    oldest_transaction,
    quiet,
});

/// By their names: one that only one end knows is nothing.
impl Wire for Counters {
    fn write(&self) -> Value {
        let each = Counters::NAMES.iter().zip(self.values());
        let counted = each.filter(|(_, value)| *value > 0);
        Value::Object(counted.map(|(name, value)| ((*name).to_owned(), value.into())).collect())
    }

    fn read(value: Value) -> Read<Self> {
        let mut said = fields(value)?;
        let each = Counters::NAMES
            .iter()
            .map(|name| Ok(take::<Option<u64>>(&mut said, name)?.unwrap_or_default()));
        each.collect::<Read<Vec<u64>>>().map(|values| Counters::from_values(&values))
    }
}

impl Wire for Diagnosis {
    fn write(&self) -> Value {
        let Diagnosis { code, grave, found, remedy } = self;
        let mut said = Map::new();
        say(&mut said, "code", &(*code).to_owned());
        say(&mut said, "grave", grave);
        say(&mut said, "found", found);
        say(&mut said, "remedy", remedy);
        Value::Object(said)
    }

    fn read(value: Value) -> Read<Self> {
        let mut said = fields(value)?;
        Ok(Diagnosis {
            code: code(&take::<String>(&mut said, "code")?),
            grave: take(&mut said, "grave")?,
            found: take(&mut said, "found")?,
            remedy: take(&mut said, "remedy")?,
        })
    }
}

/// Most codes that are kept, and most bytes of one: there are some dozens.
const CODES: usize = 200;
const CODE_BYTES: usize = 64;

/// A code that came, as if it stood in this program. A service that makes up ever new
/// ones takes no memory.
fn code(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(text) {
        return known;
    }
    if known.len() >= CODES || text.len() > CODE_BYTES {
        return "other";
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    known.insert(kept);
    kept
}
