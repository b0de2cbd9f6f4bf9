//! What a new contract changes for those who stand with the old one.
//!
//! *Breaking* is what standing tasks cannot bear: the new contract could not
//! read them. *Careful* is what a worker with the old contract cannot read
//! while both run side by side: bring out the workers first.

use std::fmt;

use crate::{Contract, Field, QueueContract};

/// How much a change matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Old and new get along.
    Fine,
    /// Workers of the old contract cannot read tasks of the new one.
    Careful,
    /// The new contract cannot read tasks of the old one.
    Breaking,
}

impl Weight {
    /// Its name, the same on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Weight::Fine => "fine",
            Weight::Careful => "careful",
            Weight::Breaking => "breaking",
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The queue.
    pub queue: String,
    /// How much it matters.
    pub weight: Weight,
    /// What changed, and what follows.
    pub what: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.weight.as_str(), self.queue, self.what)
    }
}

/// Everything that differs, by queue, in the order of the old contract; new
/// queues last.
#[must_use]
pub fn compare(old: &Contract, new: &Contract) -> Vec<Change> {
    let mut changes = Vec::new();
    for before in &old.queues {
        let by_number = new.queues.iter().find(|queue| queue.number == before.number);
        let by_name = new.queue(before.name.as_str());
        let name = before.name.as_str();
        let mut add = |weight, what| changes.push(Change { queue: name.to_owned(), weight, what });
        match (by_number, by_name) {
            (Some(after), _) if after.name == before.name => {
                changes.extend(fields(before, after));
            }
            (_, Some(after)) => add(
                Weight::Breaking,
                format!(
                    "its id is {} and was {}: a queue keeps its number",
                    after.number, before.number
                ),
            ),
            (Some(after), None) => add(
                Weight::Breaking,
                format!(
                    "id {} is now '{}': its tasks stay behind under the old name; give the new \
                     queue a new id",
                    before.number, after.name
                ),
            ),
            (None, None) => {
                add(Weight::Breaking, "it is gone: its tasks wait and nobody reads them".to_owned())
            }
        }
    }
    for after in &new.queues {
        let is_new = old.queue(after.name.as_str()).is_none()
            && !old.queues.iter().any(|queue| queue.number == after.number);
        if is_new {
            changes.push(Change {
                queue: after.name.to_string(),
                weight: Weight::Fine,
                what: format!("it is new, with id {}", after.number),
            });
        }
    }
    changes
}

/// What differs between two contracts of one queue.
#[must_use]
pub fn fields(old: &QueueContract, new: &QueueContract) -> Vec<Change> {
    let queue = new.name.to_string();
    let change = |(weight, what)| Change { queue: queue.clone(), weight, what };
    let mut changes = Vec::new();
    for before in &old.fields {
        match new.field(&before.name) {
            Some(after) => changes.extend(field(before, after).map(change)),
            None => changes.push(change(gone(before))),
        }
    }
    for after in new.fields.iter().filter(|field| old.field(&field.name).is_none()) {
        let before = old.retired.iter().find(|field| field.name == after.name);
        changes.push(change(match before {
            Some(before) if !before.kind.is_same(after.kind) => back_as_another(before, after),
            _ => added(after),
        }));
    }
    changes
}

fn field(before: &Field, after: &Field) -> Option<(Weight, String)> {
    let (name, old, new) = (&before.name, before.kind, after.kind);
    if !old.is_same(new) {
        let what = format!(
            "field '{name}' was {old} and is {new}: standing tasks cannot be read; add a field of \
             another name, or a queue with a new id"
        );
        return Some((Weight::Breaking, what));
    }
    match (old.optional, new.optional) {
        (true, false) => Some((
            Weight::Breaking,
            format!(
                "field '{name}' may no longer be missing: standing tasks without it cannot be read"
            ),
        )),
        (false, true) => Some((
            Weight::Careful,
            format!("field '{name}' may now be missing: workers of the old contract need it"),
        )),
        _ if old != new => Some((Weight::Fine, format!("field '{name}' was {old} and is {new}"))),
        _ => None,
    }
}

fn gone(field: &Field) -> (Weight, String) {
    let name = &field.name;
    if field.kind.optional {
        return (Weight::Fine, format!("field '{name}' is gone: what tasks say of it is skipped"));
    }
    let what = format!(
        "field '{name}' is gone: workers of the old contract need it; bring out the workers first"
    );
    (Weight::Careful, what)
}

fn added(field: &Field) -> (Weight, String) {
    let (name, kind) = (&field.name, field.kind);
    if kind.optional {
        return (Weight::Fine, format!("field '{name}' ({kind}) is new"));
    }
    let what = format!(
        "field '{name}' ({kind}) is new and may not be missing: standing tasks do not have it; \
         make it {kind}?"
    );
    (Weight::Breaking, what)
}

fn back_as_another(before: &Field, after: &Field) -> (Weight, String) {
    let (name, old, new) = (&before.name, before.kind, after.kind);
    let what = format!(
        "field '{name}' was {old} before it was taken out and is {new}: standing tasks cannot be \
         read; add a field of another name, or a queue with a new id"
    );
    (Weight::Breaking, what)
}

/// Whether any of them breaks.
#[must_use]
pub fn is_breaking(changes: &[Change]) -> bool {
    changes.iter().any(|change| change.weight == Weight::Breaking)
}
