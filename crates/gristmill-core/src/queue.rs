//! The queue: a named, numbered lane of tasks, and where its settings came from.

use std::fmt;

use crate::{QueueName, Result, Settings, SettingsPatch, StoreError, Timestamp};

/// First number of queues that no contract numbers.
pub const FIRST_FREE_NUMBER: u32 = 10_000;

/// Who declares a queue. Later ones win: contract, then configuration, then
/// code; an operator's override wins over all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The YAML contract.
    Contract,
    /// The configuration file.
    Config,
    /// The application's code, or `queue add`.
    Code,
}

impl Origin {
    /// All origins, weakest first.
    pub const ALL: [Origin; 3] = [Origin::Contract, Origin::Config, Origin::Code];

    /// Its name, the same on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Origin::Contract => "contract",
            Origin::Config => "config",
            Origin::Code => "code",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Says that a queue exists and how it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// Its name.
    pub name: QueueName,
    /// Its number, 1 to 9999, when a contract gives one.
    pub number: Option<u32>,
    /// What this origin says; replaces what it said before.
    pub settings: SettingsPatch,
    /// Who says so.
    pub origin: Origin,
}

impl Declaration {
    /// A declaration by code with default settings.
    #[must_use]
    pub fn new(name: QueueName) -> Self {
        Declaration { name, number: None, settings: SettingsPatch::default(), origin: Origin::Code }
    }
}

/// What a declaration or override changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The queue as it is now.
    pub queue: Queue,
    /// Whether it is new.
    pub created: bool,
    /// Settings in force that changed: name, before, after.
    pub changes: Vec<(&'static str, String, String)>,
}

/// An operator's change: wins until it is reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// What was changed.
    pub settings: SettingsPatch,
    /// Who did it.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// A declared queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: QueueName,
    /// Its number: 1 to 9999 by contract, others from 10000.
    pub number: u32,
    /// What each origin declared, weakest first.
    pub declared: Vec<(Origin, SettingsPatch)>,
    /// The operator's change.
    pub overridden: Option<Override>,
    /// The settings in force.
    pub settings: Settings,
    /// Claims are stopped; puts and schedules go on.
    pub paused: bool,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// The contract text it was registered with.
    pub contract: Option<String>,
    /// When it was first declared.
    pub created_at: Timestamp,
}

impl Declaration {
    /// Refuses a number that no contract can give, and one that differs from
    /// the number the queue has.
    ///
    /// # Errors
    /// When the number is out of range or the queue has another.
    pub fn check_number(&self, known: Option<u32>) -> Result<()> {
        let name = &self.name;
        match (self.number, known) {
            (Some(asked), _) if asked == 0 || asked >= FIRST_FREE_NUMBER => {
                Err(StoreError::invalid(format!(
                    "queue '{name}': a contract's number is from 1 to 9999"
                )))
            }
            (Some(asked), Some(known)) if asked != known => Err(StoreError::invalid(format!(
                "queue '{name}' has number {known} and cannot become {asked}"
            ))),
            _ => Ok(()),
        }
    }

    /// The error when another queue has the number that this one asks for.
    #[must_use]
    pub fn number_taken(&self, asked: u32, holder: &str) -> StoreError {
        StoreError::invalid(format!(
            "number {asked} belongs to queue '{holder}' and cannot be '{}' too",
            self.name
        ))
    }

    /// The number of a new queue: as asked, or the first free one behind
    /// `last`, the highest of all.
    #[must_use]
    pub fn new_number(&self, last: Option<u32>) -> u32 {
        self.number.unwrap_or_else(|| FIRST_FREE_NUMBER.max(last.unwrap_or(0).saturating_add(1)))
    }
}

impl Queue {
    /// A queue that nobody declared before.
    #[must_use]
    pub fn new(name: QueueName, number: u32, now: Timestamp) -> Self {
        Queue {
            name,
            number,
            declared: Vec::new(),
            overridden: None,
            settings: Settings::default(),
            paused: false,
            paused_by: None,
            contract: None,
            created_at: now,
        }
    }

    /// Takes down what an origin says, instead of what it said before. It is
    /// not in force until [`Queue::adopt`].
    pub fn declare(&mut self, origin: Origin, settings: SettingsPatch) {
        self.declared.retain(|(known, _)| *known != origin);
        self.declared.push((origin, settings));
        self.declared.sort_by_key(|(origin, _)| *origin);
    }

    /// Takes down an operator's change, on top of earlier ones. It is not in
    /// force until [`Queue::adopt`].
    pub fn overlay(&mut self, settings: &SettingsPatch, by: &str, now: Timestamp) {
        let mut patch = self.overridden.take().map(|change| change.settings).unwrap_or_default();
        settings.merge_into(&mut patch);
        self.overridden = Some(Override { settings: patch, by: by.to_owned(), at: now });
    }

    /// Puts in force what was taken down. Returns what changed: name, before,
    /// after.
    ///
    /// # Errors
    /// When settings contradict each other; nothing is in force then.
    pub fn adopt(&mut self) -> Result<Vec<(&'static str, String, String)>> {
        let settings =
            Queue::effective(&Settings::default(), &self.declared, self.overridden.as_ref());
        settings.check().map_err(|e| StoreError::invalid(format!("queue '{}': {e}", self.name)))?;
        let changes = self.settings.differences(&settings);
        self.settings = settings;
        Ok(changes)
    }

    /// The settings in force: defaults, then declarations from the weakest
    /// origin up, then the operator's override.
    #[must_use]
    pub fn effective(
        base: &Settings,
        declared: &[(Origin, SettingsPatch)],
        overridden: Option<&Override>,
    ) -> Settings {
        let mut settings = base.clone();
        let mut declared: Vec<_> = declared.iter().collect();
        declared.sort_by_key(|(origin, _)| *origin);
        for (_, patch) in declared {
            patch.apply_to(&mut settings);
        }
        if let Some(change) = overridden {
            change.settings.apply_to(&mut settings);
        }
        settings
    }
}

/// Registers a queue's contract text.
///
/// Whether it breaks the stored one is decided outside, by comparing both;
/// `replaces` names what was compared with, so that two registrations at once
/// cannot slip past each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractChange {
    /// The queue.
    pub queue: QueueName,
    /// The new text.
    pub text: String,
    /// The stored text that the caller compared with.
    pub replaces: Option<String>,
    /// Standing tasks could not be read by the new one: refuse while any
    /// stands.
    pub breaking: bool,
}

/// What the store says to a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContractAnswer {
    /// It is on record.
    Registered,
    /// The stored text is not the one that was compared with: compare again.
    Changed,
    /// It breaks the stored one and this many tasks stand.
    TasksStand(u64),
}
