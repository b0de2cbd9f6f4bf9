//! Queues: declared, overridden, reset, paused, and their contracts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::lane::Lane;
use super::state::{Counts, QueueState, State};
use crate::{
    ContractAnswer, ContractChange, Counters, Declaration, Declared, Queue, QueueName, Result,
    SettingsPatch, StoreError, Timestamp,
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
        let had_slots = queue.settings.slots.is_some();
        let changes = queue.adopt()?;
        if queue.settings.bind.is_some() {
            return Err(StoreError::not_supported(format!(
                "queue '{}': this store has no tables to bind a queue to",
                queue.name
            )));
        }
        let slots_changed = had_slots != queue.settings.slots.is_some();
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
        if slots_changed {
            self.regroup(number);
        }
        Ok(Declared { queue, created, changes })
    }

    /// The lanes by group exist only while a queue has slots.
    pub(super) fn regroup(&mut self, number: u32) {
        let Some(queue) = self.queues.get_mut(&number) else {
            return;
        };
        queue.by_group.clear();
        if queue.queue.settings.slots.is_none() {
            return;
        }
        for (_, _, id) in queue.lane.due(Timestamp::MAX) {
            let Some(row) = self.rows.get(&id) else {
                continue;
            };
            let group = row.task.group.clone().unwrap_or_default();
            queue.by_group.entry(group).or_default().insert(row.entry());
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

pub(super) fn new_queue(queue: Queue) -> QueueState {
    QueueState {
        queue,
        lane: Lane::default(),
        by_source: HashMap::new(),
        by_group: BTreeMap::new(),
        delayed: BTreeSet::new(),
        places: HashMap::new(),
        ids: HashMap::new(),
        counts: Counts::default(),
        counters: Counters::default(),
        minutes: BTreeMap::new(),
    }
}
