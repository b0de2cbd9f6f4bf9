//! The queue: a named, numbered lane of tasks, and where its settings came from.

use std::fmt;

use crate::{QueueName, Settings, SettingsPatch, Timestamp};

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

impl Queue {
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
