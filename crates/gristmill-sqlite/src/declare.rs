//! Queues: declared, overridden, reset, paused, and their contracts.

use gristmill_core::{
    ContractAnswer, ContractChange, Declaration, Declared, Queue, QueueName, Result, SettingsPatch,
};

use crate::codec;
use crate::delta::unsigned;
use crate::sql::{Sql, at, bind};
use crate::write::Write;

impl Write<'_, '_> {
    /// Says that a queue exists.
    pub(crate) fn declare_queue(&mut self, declaration: &Declaration) -> Result<Declared> {
        let known = self.known.find(self.db, &declaration.name)?;
        declaration.check_number(known.as_ref().map(|known| known.number))?;
        if let (None, Some(asked)) = (&known, declaration.number)
            && let Some(holder) =
                self.db.one(Sql::QueueByNumber, bind!(QueueByNumber { number: asked }), |row| {
                    row.get::<_, String>(at!(QueueByNumber.name))
                })?
        {
            return Err(declaration.number_taken(asked, &holder));
        }
        let created = known.is_none();
        let mut queue = match known {
            Some(known) => Queue::clone(&known),
            None => {
                let last: Option<Option<u32>> = self
                    .db
                    .one(Sql::QueueLastNumber, [], |row| row.get(at!(QueueLastNumber.last)))?;
                let number = declaration.new_number(last.flatten());
                Queue::new(declaration.name.clone(), number, self.now)
            }
        };
        queue.declare(declaration.origin, declaration.settings.clone());
        self.adopt(queue, created)
    }

    /// An operator's change, on top of earlier ones.
    pub(crate) fn override_queue(
        &mut self,
        name: &QueueName,
        settings: &SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        let mut queue = Queue::clone(&*self.queue(name)?);
        queue.overlay(settings, by, self.now);
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
        let before = queue.settings.clone();
        let changes = queue.adopt()?;
        if let Some(bind) = &queue.settings.bind {
            self.check_binding(&queue.name, bind)?;
        }
        self.save_queue(&queue)?;
        if created {
            self.db.run(Sql::CountNew, bind!(CountNew { queue: queue.number }))?;
        }
        if !before.is_grouped() && queue.settings.is_grouped() {
            self.db.run(Sql::ReadyRegroup, bind!(ReadyRegroup { queue: queue.number }))?;
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
            bind!(QueueSave {
                number: queue.number,
                name: queue.name.as_str(),
                declared,
                overridden,
                paused: queue.paused,
                paused_by: queue.paused_by,
                contract: queue.contract,
                created_at: queue.created_at.as_micros()
            }),
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
