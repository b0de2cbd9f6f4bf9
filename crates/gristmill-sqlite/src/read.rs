//! Reading tasks: one, or those of some keys. Pages of them are in `list.rs`.

use std::collections::HashMap;
use std::sync::Arc;

use gristmill_core::{
    KeyStanding, ProgressView, Queue, QueueName, Result, StandingPlace, State, Task, TaskId,
};

use crate::checkpoint;
use crate::db::Db;
use crate::known::Known;
use crate::lease::{self, Lease};
use crate::row::{Place, Row};
use crate::sql::{Sql, at, bind};

/// What a processing task is open under, and how far it is.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) lease: Arc<Lease>,
    pub(crate) progress: Option<ProgressView>,
}

/// Reads tasks within one snapshot.
pub(crate) struct Lister<'a, 'c> {
    pub(crate) db: &'a Db<'c>,
    pub(crate) known: &'a mut Known,
    /// Which lease a processing task is open under; read when first needed.
    leases: Option<HashMap<i64, Held>>,
}

impl<'a, 'c> Lister<'a, 'c> {
    pub(crate) const fn new(db: &'a Db<'c>, known: &'a mut Known) -> Self {
        Lister { db, known, leases: None }
    }

    /// One task, whatever its state.
    pub(crate) fn get(mut self, id: TaskId) -> Result<Option<Task>> {
        let row = match Row::load(self.db, id.0)? {
            Some(row) => Some(row),
            None => self.db.one(Sql::DoneById, bind!(DoneById { id: id.0 }), Row::read)?,
        };
        let task = row.map(|row| self.show(row)).transpose()?;
        task.map(|task| self.with_payload(task)).transpose()
    }

    pub(crate) fn leases(&mut self) -> Result<&HashMap<i64, Held>> {
        if self.leases.is_none() {
            let mut by_id = HashMap::new();
            let every = self.db.all(Sql::LeaseAll, [], |row| {
                let progress = row.get_ref(at!(LeaseAll.progress))?.as_str_or_null();
                // What is no text is not shown.
                Ok((Lease::read(row)?, lease::said(progress.ok().flatten()).0))
            })?;
            for (lease, mut said) in every {
                let lease = Arc::new(lease);
                by_id.extend(
                    lease
                        .ids
                        .iter()
                        .map(|id| (*id, Held { lease: lease.clone(), progress: said.remove(id) })),
                );
            }
            self.leases = Some(by_id);
        }
        Ok(self.leases.get_or_insert_default())
    }

    pub(crate) fn show(&mut self, row: Row) -> Result<Task> {
        let queue: Arc<Queue> = self.known.numbered(self.db, row.queue)?;
        let lease = if row.state() == State::Processing {
            self.leases()?.get(&row.id).cloned()
        } else {
            None
        };
        Ok(row.into_task(&queue, lease, Vec::new()))
    }

    pub(crate) fn with_payload(&self, mut task: Task) -> Result<Task> {
        let sql = match task.state {
            State::Done => Sql::DonePayload,
            _ => Sql::TaskPayload,
        };
        let found = self.db.one(sql, bind!(TaskPayload { id: task.id.0 }), |row| {
            let checkpoint: Option<Vec<u8>> = row.get(at!(TaskPayload.checkpoint))?;
            Ok((row.get::<_, Vec<u8>>(at!(TaskPayload.payload))?, checkpoint))
        })?;
        let (bytes, checkpoint) = found.unwrap_or_default();
        task.payload.bytes = bytes.into();
        let (checkpoint, torn) = checkpoint::read(checkpoint);
        task.checkpoint = checkpoint;
        if let Some(torn) = torn {
            task.damaged = Some(task.damaged.map_or(torn.clone(), |why| format!("{why}; {torn}")));
        }
        Ok(task)
    }

    /// The tasks that stand for these keys, by key and id.
    pub(crate) fn find(self, queue: &QueueName, keys: &[String]) -> Result<Vec<KeyStanding>> {
        let queue = self.known.named(self.db, queue)?;
        let mut keys: Vec<&String> = keys.iter().collect();
        keys.sort_unstable();
        keys.dedup();
        let mut found = Vec::new();
        for key in keys {
            let mut ids: Vec<i64> =
                self.db.all(Sql::KeyIds, bind!(KeyIds { queue: queue.number, key }), |row| {
                    row.get(at!(KeyIds.id))
                })?;
            ids.sort_unstable();
            for id in ids {
                let Some(row) = Row::load(self.db, id)? else {
                    continue;
                };
                found.push(KeyStanding {
                    key: key.clone(),
                    id: TaskId(id),
                    place: match row.place {
                        Place::Waiting => StandingPlace::Waiting,
                        Place::InFlight => StandingPlace::InFlight,
                        Place::Failed | Place::Done => StandingPlace::Failed,
                    },
                    state: row.state(),
                });
            }
        }
        Ok(found)
    }
}
