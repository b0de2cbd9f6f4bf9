//! Queues: declared, overridden, reset, paused, and their contracts.

use gristmill_core::queue::FIRST_FREE_NUMBER;
use gristmill_core::{
    ContractAnswer, ContractChange, Declaration, Declared, Override, Queue, QueueName, Result,
    Settings, SettingsPatch, StoreError,
};
use rusqlite::params;

use crate::codec;
use crate::delta::unsigned;
use crate::sql::Sql;
use crate::write::Write;

impl Write<'_, '_> {
    /// Says that a queue exists.
    pub(crate) fn declare_queue(&mut self, declaration: &Declaration) -> Result<Declared> {
        let Declaration { name, number, settings, origin } = declaration;
        if number.is_some_and(|n| n == 0 || n >= FIRST_FREE_NUMBER) {
            return Err(StoreError::Invalid(format!(
                "queue '{name}': a contract's number is from 1 to 9999"
            )));
        }
        let known = self.known.find(self.db, name)?;
        if let (Some(known), Some(asked)) = (&known, number)
            && known.number != *asked
        {
            return Err(StoreError::Invalid(format!(
                "queue '{name}' has number {} and cannot become {asked}",
                known.number
            )));
        }
        if let (None, Some(asked)) = (&known, number)
            && let Some(other) =
                self.db.one(Sql::QueueByNumber, params![asked], |row| row.get::<_, String>(1))?
        {
            return Err(StoreError::Invalid(format!(
                "number {asked} belongs to queue '{other}' and cannot be '{name}' too"
            )));
        }
        let created = known.is_none();
        let mut queue = match known {
            Some(known) => Queue::clone(&known),
            None => Queue {
                name: name.clone(),
                number: match number {
                    Some(number) => *number,
                    None => self.free_number()?,
                },
                declared: Vec::new(),
                overridden: None,
                settings: Settings::default(),
                paused: false,
                paused_by: None,
                contract: None,
                created_at: self.now,
            },
        };
        queue.declared.retain(|(known, _)| known != origin);
        queue.declared.push((*origin, settings.clone()));
        queue.declared.sort_by_key(|(origin, _)| *origin);
        self.adopt(queue, created)
    }

    fn free_number(&self) -> Result<u32> {
        let last: Option<Option<u32>> = self.db.one(Sql::QueueLastNumber, [], |row| row.get(0))?;
        let last = last.flatten().unwrap_or(0);
        Ok(FIRST_FREE_NUMBER.max(last.saturating_add(1)))
    }

    /// An operator's change, on top of earlier ones.
    pub(crate) fn override_queue(
        &mut self,
        name: &QueueName,
        settings: &SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        let mut queue = Queue::clone(&*self.queue(name)?);
        let mut patch = queue.overridden.take().map(|change| change.settings).unwrap_or_default();
        settings.merge_into(&mut patch);
        queue.overridden = Some(Override { settings: patch, by: by.to_owned(), at: self.now });
        self.adopt(queue, false)
    }

    /// Takes the operator's change back.
    pub(crate) fn reset_queue(&mut self, name: &QueueName) -> Result<Declared> {
        let mut queue = Queue::clone(&*self.queue(name)?);
        queue.overridden = None;
        self.adopt(queue, false)
    }

    /// Checks a queue's new settings and puts them in force, or changes
    /// nothing.
    fn adopt(&mut self, mut queue: Queue, created: bool) -> Result<Declared> {
        let settings =
            Queue::effective(&Settings::default(), &queue.declared, queue.overridden.as_ref());
        settings
            .check()
            .map_err(|e| StoreError::Invalid(format!("queue '{}': {e}", queue.name)))?;
        if let Some(bind) = &settings.bind {
            self.check_binding(&queue.name, bind)?;
        }
        let changes = queue.settings.differences(&settings);
        let before = std::mem::replace(&mut queue.settings, settings);
        self.save_queue(&queue)?;
        if created {
            self.db.run(Sql::CountNew, params![queue.number])?;
        }
        if before.slots.is_none() && queue.settings.slots.is_some() {
            self.db.run(Sql::ReadyRegroup, params![queue.number])?;
        }
        if before.bind != queue.settings.bind {
            self.rebind(&queue)?;
        }
        self.wake(&queue);
        Ok(Declared { queue, created, changes })
    }

    fn save_queue(&mut self, queue: &Queue) -> Result<()> {
        let (declared, overridden) = codec::queue_texts(queue)?;
        self.db.run(
            Sql::QueueSave,
            params![
                queue.number,
                queue.name.as_str(),
                declared,
                overridden,
                queue.paused,
                queue.paused_by,
                queue.contract,
                queue.created_at.as_micros(),
            ],
        )?;
        self.known.changed(self.db)
    }

    /// Stops or resumes claims.
    pub(crate) fn pause_queue(&mut self, name: &QueueName, paused: bool, by: &str) -> Result<()> {
        let mut queue = Queue::clone(&*self.queue(name)?);
        queue.paused = paused;
        queue.paused_by = paused.then(|| by.to_owned());
        self.save_queue(&queue)?;
        if !paused {
            self.wake(&queue);
        }
        Ok(())
    }

    /// Keeps a queue's contract text, unless it would break standing tasks.
    pub(crate) fn register_contract(&mut self, change: &ContractChange) -> Result<ContractAnswer> {
        let mut queue = Queue::clone(&*self.queue(&change.queue)?);
        if queue.contract != change.replaces {
            return Ok(ContractAnswer::Changed);
        }
        let standing = unsigned(self.standing(queue.number)?);
        if change.breaking && standing > 0 {
            return Ok(ContractAnswer::TasksStand(standing));
        }
        queue.contract = Some(change.text.clone());
        self.save_queue(&queue)?;
        Ok(ContractAnswer::Registered)
    }
}
