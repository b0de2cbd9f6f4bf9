//! Queues: declared, overridden, reset, paused, and their contracts. What a
//! change leads to is decided here, under a lock; the database records it.

use gristmill_core::{
    ContractAnswer, ContractChange, Declaration, Declared, Queue, QueueName, Result, SettingsPatch,
    StoreError, Timestamp,
};
use gristmill_text::settings;

use crate::answer::column;
use crate::codec::{self, count};
use crate::deadline::Class;
use crate::pool::Taken;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::At;

/// A change of queues under way: nobody else changes any meanwhile.
struct Change<'a> {
    connection: Taken<'a>,
    now: Timestamp,
}

impl Change<'_> {
    async fn find(&mut self, name: &QueueName) -> Result<Option<Queue>> {
        let rows = self.connection.run(Sql::QueueByName, &[&name.as_str()]).await?;
        rows.first().map(codec::queue).transpose()
    }

    async fn save(&mut self, queue: &Queue) -> Result<()> {
        let (declared, overridden) = codec::queue_texts(queue)?;
        self.connection
            .run(
                Sql::QueueSave,
                &[
                    &number(queue),
                    &queue.name.as_str(),
                    &declared,
                    &overridden,
                    &queue.paused,
                    &queue.paused_by,
                    &queue.contract,
                    &At(queue.created_at),
                ],
            )
            .await?;
        Ok(())
    }

    /// Checks a queue's new settings and puts them in force, or changes
    /// nothing.
    async fn adopt(&mut self, mut queue: Queue, created: bool) -> Result<Declared> {
        let bound = queue.settings.bind.clone();
        let changes = queue.adopt()?;
        self.save(&queue).await?;
        let in_force = settings::write(&settings::whole(&queue.settings)).to_string();
        self.connection.run(Sql::QueueInForce, &[&number(&queue), &in_force]).await?;
        let bind = queue.settings.bind.as_ref();
        let again = bound.as_ref() == bind;
        if bind.is_some() || !again {
            // Refused where the table or its column is not there.
            let table = bind.map(|bind| &bind.table);
            let name = bind.map(|bind| &bind.column);
            self.connection
                .run(Sql::SubjectBind, &[&number(&queue), &table, &name, &again])
                .await?;
        }
        Ok(Declared { queue, created, changes })
    }
}

fn number(queue: &Queue) -> i32 {
    i32::try_from(queue.number).unwrap_or(i32::MAX)
}

impl Inner {
    async fn change(&self) -> Result<Change<'_>> {
        let mut connection = self.pool.take(Class::Operator).await?;
        connection.begin().await?;
        connection.run(Sql::QueueLock, &[]).await?;
        let rows = connection.run(Sql::Now, &[&self.now()]).await?;
        let now = rows
            .first()
            .map_or(Ok(Timestamp::EPOCH), |row| Ok(column::<At>(row, at!(Now.now))?.0))?;
        Ok(Change { connection, now })
    }

    /// The change's end: committed when it succeeded, undone when not.
    async fn ended<T>(&self, change: Change<'_>, answer: Result<T>) -> Result<T> {
        match answer {
            Ok(answer) => change.connection.commit().await.map(|()| answer),
            Err(error) => {
                // The first error is the one to tell.
                let _ = change.connection.roll_back().await;
                Err(error)
            }
        }
    }

    /// As [`Inner::ended`], of a change to one queue. A similar name is looked
    /// for only when the change's connection is given back: there may be no
    /// other one, and everybody waits for its lock.
    async fn ended_of<T>(
        &self,
        queue: &QueueName,
        change: Change<'_>,
        answer: Result<T>,
    ) -> Result<T> {
        match self.ended(change, answer).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.named(error, queue).await),
        }
    }

    /// Says that a queue exists.
    pub(crate) async fn declare_queue(&self, declaration: Declaration) -> Result<Declared> {
        let mut change = self.change().await?;
        let answer = declare(&mut change, declaration).await;
        let declared = self.ended(change, answer).await?;
        self.woken(std::slice::from_ref(&declared.queue.name));
        Ok(declared)
    }

    /// An operator's change, or its end.
    pub(crate) async fn override_queue(
        &self,
        name: &QueueName,
        settings: Option<(&SettingsPatch, &str)>,
    ) -> Result<Declared> {
        let mut change = self.change().await?;
        let found = change.find(name).await;
        let answer = match found {
            Ok(Some(mut queue)) => {
                match settings {
                    Some((patch, by)) => queue.overlay(patch, by, change.now),
                    None => queue.overridden = None,
                }
                change.adopt(queue, false).await
            }
            Ok(None) => Err(unknown(name)),
            Err(error) => Err(error),
        };
        let declared = self.ended_of(name, change, answer).await?;
        self.woken(std::slice::from_ref(&declared.queue.name));
        Ok(declared)
    }

    /// Stops or resumes claims.
    pub(crate) async fn pause_queue(&self, name: &QueueName, paused: bool, by: &str) -> Result<()> {
        let mut change = self.change().await?;
        let answer = match change.find(name).await {
            Ok(Some(mut queue)) => {
                queue.paused = paused;
                queue.paused_by = paused.then(|| by.to_owned());
                change.save(&queue).await
            }
            Ok(None) => Err(unknown(name)),
            Err(error) => Err(error),
        };
        self.ended_of(name, change, answer).await?;
        if !paused {
            self.woken(std::slice::from_ref(name));
        }
        Ok(())
    }

    /// Keeps a queue's contract text, unless it would break standing tasks.
    pub(crate) async fn register_contract(&self, asked: ContractChange) -> Result<ContractAnswer> {
        let name = asked.queue.clone();
        let mut change = self.change().await?;
        let answer = match change.find(&name).await {
            Ok(Some(queue)) => register(&mut change, queue, asked).await,
            Ok(None) => Err(unknown(&name)),
            Err(error) => Err(error),
        };
        self.ended_of(&name, change, answer).await
    }
}

fn unknown(queue: &QueueName) -> StoreError {
    StoreError::UnknownQueue { name: queue.to_string(), suggestion: None }
}

async fn declare(change: &mut Change<'_>, declaration: Declaration) -> Result<Declared> {
    let known = change.find(&declaration.name).await?;
    declaration.check_number(known.as_ref().map(|queue| queue.number))?;
    let created = known.is_none();
    let mut queue = match known {
        Some(queue) => queue,
        None => {
            let rows = change.connection.run(Sql::QueueNumbers, &[]).await?;
            let mut last = None;
            for row in &rows {
                let number = codec::small(column(row, at!(QueueNumbers.number))?);
                if declaration.number == Some(number) {
                    return Err(
                        declaration.number_taken(number, column(row, at!(QueueNumbers.name))?)
                    );
                }
                last = Some(number);
            }
            Queue::new(declaration.name.clone(), declaration.new_number(last), change.now)
        }
    };
    queue.declare(declaration.origin, declaration.settings);
    change.adopt(queue, created).await
}

async fn register(
    change: &mut Change<'_>,
    mut queue: Queue,
    asked: ContractChange,
) -> Result<ContractAnswer> {
    if queue.contract != asked.replaces {
        return Ok(ContractAnswer::Changed);
    }
    if asked.breaking {
        let rows = change.connection.run(Sql::QueueStanding, &[&number(&queue)]).await?;
        let standing =
            rows.first().map_or(Ok(0), |row| column::<i64>(row, at!(QueueStanding.standing)))?;
        if standing > 0 {
            return Ok(ContractAnswer::TasksStand(count(standing)));
        }
    }
    queue.contract = Some(asked.text);
    change.save(&queue).await?;
    Ok(ContractAnswer::Registered)
}
