//! Queues: declared, overridden, reset, paused, and their contracts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::lane::Lane;
use super::state::{Counts, QueueState, State};
use crate::{
    ContractAnswer, ContractChange, Counters, Declaration, Declared, Queue, QueueName, Result,
    Settings, SettingsPatch, StoreError, Timestamp,
};

impl State {
    /// Says that a queue exists.
    ///
    /// # Errors
    /// As [`Store::declare_queue`](crate::Store::declare_queue).
    pub fn declare_queue(&mut self, declaration: Declaration, now: Timestamp) -> Result<Declared> {
        let known = self.numbers.get(&declaration.name).copied();
        declaration.check_number(known)?;
        if let (None, Some(asked)) = (known, declaration.number)
            && let Some(other) = self.queues.get(&asked)
        {
            return Err(declaration.number_taken(asked, other.queue.name.as_str()));
        }
        let mut queue = match known.and_then(|number| self.queues.get(&number)) {
            Some(known) => known.queue.clone(),
            None => {
                let last = self.queues.keys().next_back().copied();
                Queue::new(declaration.name.clone(), declaration.new_number(last), now)
            }
        };
        queue.declare(declaration.origin, declaration.settings);
        self.adopt(queue, known.is_none())
    }

    /// An operator's change.
    ///
    /// # Errors
    /// As [`Store::override_queue`](crate::Store::override_queue).
    pub fn override_queue(
        &mut self,
        name: &QueueName,
        settings: &SettingsPatch,
        by: &str,
        now: Timestamp,
    ) -> Result<Declared> {
        let number = self.number(name)?;
        let mut queue = self.queue_mut(number)?.queue.clone();
        queue.overlay(settings, by, now);
        self.adopt(queue, false)
    }

    /// Takes the operator's change back.
    ///
    /// # Errors
    /// As [`Store::reset_queue`](crate::Store::reset_queue).
    pub fn reset_queue(&mut self, name: &QueueName) -> Result<Declared> {
        let number = self.number(name)?;
        let mut queue = self.queue_mut(number)?.queue.clone();
        queue.overridden = None;
        self.adopt(queue, false)
    }

    /// Checks a queue's new settings and puts them in force, or changes
    /// nothing.
    fn adopt(&mut self, mut queue: Queue, created: bool) -> Result<Declared> {
        let before = queue.settings.clone();
        let changes = queue.adopt()?;
        if queue.settings.bind.is_some() {
            return Err(StoreError::not_supported(format!(
                "queue '{}': this store has no tables to bind a queue to",
                queue.name
            )));
        }
        let regroup = groups_differ(&before, &queue.settings);
        let number = queue.number;
        self.numbers.insert(queue.name.clone(), number);
        self.woken.push(queue.name.clone());
        self.note(|changes| changes.queues.push(number));
        match self.queues.get_mut(&number) {
            Some(known) => known.queue = queue.clone(),
            None => {
                self.queues.insert(number, new_queue(queue.clone()));
            }
        }
        if regroup {
            self.regroup(number);
        }
        Ok(Declared { queue, created, changes })
    }

    /// What is kept by group exists only while claims look at it.
    pub(super) fn regroup(&mut self, number: u32) {
        let Some(queue) = self.queues.get_mut(&number) else {
            return;
        };
        queue.by_group.clear();
        queue.leased.clear();
        if queue.queue.settings.is_grouped() {
            for (_, _, id) in queue.lane.due(Timestamp::MAX) {
                let Some(row) = self.rows.get(&id) else {
                    continue;
                };
                let group = row.task.group.clone().unwrap_or_default();
                queue.by_group.entry(group).or_default().insert(row.entry());
            }
        }
        if queue.queue.settings.counts_groups() {
            for (token, lease) in self.leases.iter().filter(|(_, lease)| lease.number == number) {
                let rows = lease.ids.iter().filter_map(|id| self.rows.get(id));
                for row in rows.filter(|row| row.lease == Some(*token)) {
                    let group = row.task.group.clone().unwrap_or_default();
                    *queue.leased.entry(group).or_default() += 1;
                }
            }
        }
    }

    /// Stops or resumes claims.
    ///
    /// # Errors
    /// As [`Store::pause_queue`](crate::Store::pause_queue).
    pub fn pause_queue(&mut self, name: &QueueName, paused: bool, by: &str) -> Result<()> {
        let number = self.number(name)?;
        self.note(|changes| changes.queues.push(number));
        let queue = &mut self.queue_mut(number)?.queue;
        queue.paused = paused;
        queue.paused_by = paused.then(|| by.to_owned());
        let name = queue.name.clone();
        if !paused {
            self.woken.push(name);
        }
        Ok(())
    }

    /// Keeps a queue's contract text.
    ///
    /// # Errors
    /// As [`Store::register_contract`](crate::Store::register_contract).
    pub fn register_contract(&mut self, change: ContractChange) -> Result<ContractAnswer> {
        let number = self.number(&change.queue)?;
        let queue = self.queue_mut(number)?;
        if queue.queue.contract != change.replaces {
            return Ok(ContractAnswer::Changed);
        }
        let counts = queue.counts;
        let standing = counts.ready
            + counts.blocked
            + counts.processing
            + counts.failed
            + queue.delayed.len() as u64;
        if change.breaking && standing > 0 {
            return Ok(ContractAnswer::TasksStand(standing));
        }
        queue.queue.contract = Some(change.text);
        self.note(|changes| changes.queues.push(number));
        Ok(ContractAnswer::Registered)
    }
}

/// Whether something else is kept by group under other settings.
pub(super) fn groups_differ(one: &Settings, other: &Settings) -> bool {
    (one.is_grouped(), one.counts_groups()) != (other.is_grouped(), other.counts_groups())
}

pub(super) fn new_queue(queue: Queue) -> QueueState {
    QueueState {
        queue,
        lane: Lane::default(),
        by_source: HashMap::new(),
        by_group: BTreeMap::new(),
        leased: HashMap::new(),
        buckets: BTreeMap::new(),
        turns: BTreeMap::new(),
        delayed: BTreeSet::new(),
        places: HashMap::new(),
        ids: HashMap::new(),
        counts: Counts::default(),
        counters: Counters::default(),
        minutes: BTreeMap::new(),
    }
}
