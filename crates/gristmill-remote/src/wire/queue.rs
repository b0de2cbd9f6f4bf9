//! Queues, what declares and changes them, and their contracts.

use gristmill_core::{
    ContractAnswer, ContractChange, Declaration, Declared, Override, Queue, Settings,
};
use serde_json::{Map, Value};

use super::{Read, Wire, fields, say, take};

record!(Declaration { name, number, settings, origin });
record!(Override { settings, by, at });
record!(Queue {
    name,
    number,
    declared,
    overridden,
    settings,
    paused,
    paused_by,
    contract,
    created_at,
});
record!(ContractChange { queue, text, replaces, breaking });
choice!(ContractAnswer {
    "registered" = Registered,
    "changed" = Changed,
    "tasks_stand" = TasksStand(tasks),
});

/// A setting that changed: its name, and both values in words. One that is not known here
/// is left out: nobody could do anything with it.
impl Wire for Declared {
    fn write(&self) -> Value {
        let Declared { queue, created, changes } = self;
        let mut said = Map::new();
        say(&mut said, "queue", queue);
        say(&mut said, "created", created);
        let changes: Vec<(String, (String, String))> = changes
            .iter()
            .map(|(name, from, to)| ((*name).to_owned(), (from.clone(), to.clone())))
            .collect();
        say(&mut said, "changes", &changes);
        Value::Object(said)
    }

    fn read(value: Value) -> Read<Self> {
        let mut said = fields(value)?;
        let changes: Vec<(String, (String, String))> = take(&mut said, "changes")?;
        let known = |name: &str| Settings::NAMES.iter().copied().find(|known| *known == name);
        let changes =
            changes.into_iter().filter_map(|(name, (from, to))| Some((known(&name)?, from, to)));
        Ok(Declared {
            queue: take(&mut said, "queue")?,
            created: take(&mut said, "created")?,
            changes: changes.collect(),
        })
    }
}
