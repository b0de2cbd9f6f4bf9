//! Reading tasks: one, a page, or those of some keys.

use std::collections::HashMap;
use std::sync::Arc;

use gristmill_core::{
    KeyStanding, Limits, ListRequest, Order, Page, Queue, QueueName, Result, StandingPlace, State,
    Task, TaskFilter, TaskId,
};

use crate::checkpoint;
use crate::db::Db;
use crate::known::Known;
use crate::lease::Lease;
use crate::row::{Place, Row};
use crate::sql::{Sql, at, bind};

/// Tasks looked at in one call.
pub(crate) const VISITED: usize = 10_000;
/// Tasks read in one statement.
const STRIDE: usize = 500;

/// Reads tasks within one snapshot.
pub(crate) struct Lister<'a, 'c> {
    db: &'a Db<'c>,
    known: &'a mut Known,
    /// Which lease a processing task is open under; read when first needed.
    leases: Option<HashMap<i64, Arc<Lease>>>,
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

    /// A page of tasks by id.
    pub(crate) fn list(mut self, request: &ListRequest, limits: &Limits) -> Result<Page> {
        let limit = request.limit.clamp(1, limits.page);
        let newest = request.order == Order::Newest;
        let (tasks, next) =
            self.walk(&request.filter, request.after, newest, limit, VISITED, &mut |_| true)?;
        let tasks = tasks.into_iter().map(|task| self.with_payload(task)).collect::<Result<_>>()?;
        Ok(Page { tasks, next })
    }

    /// Tasks that match, without their payloads, and where to go on.
    pub(crate) fn visit(
        mut self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        newest: bool,
        limit: usize,
        visited: usize,
        mut meant: impl FnMut(&Task) -> bool,
    ) -> Result<(Vec<Task>, Option<TaskId>)> {
        self.walk(filter, after, newest, limit, visited, &mut meant)
    }

    fn walk(
        &mut self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        newest: bool,
        limit: usize,
        mut visits: usize,
        meant: &mut dyn FnMut(&Task) -> bool,
    ) -> Result<(Vec<Task>, Option<TaskId>)> {
        let mut found = Vec::new();
        let Some(way) = self.way(filter, newest)? else {
            return Ok((found, None));
        };
        let start = if newest { i64::MAX } else { i64::MIN };
        let mut at = after.map_or(start, |id| id.0);
        loop {
            let rows = self.stretch(&way, at, newest, STRIDE.min(visits))?;
            let last = rows.len() < STRIDE.min(visits);
            visits -= rows.len();
            for row in rows {
                at = row.id;
                let task = self.show(row)?;
                if filter.matches(&task) && meant(&task) {
                    found.push(task);
                    if found.len() == limit {
                        return Ok((found, Some(TaskId(at))));
                    }
                }
            }
            if last {
                return Ok((found, None));
            }
            if visits == 0 {
                return Ok((found, Some(TaskId(at))));
            }
        }
    }

    /// The narrowest way to what the filter asks for; none when nothing can
    /// match.
    fn way(&mut self, filter: &TaskFilter, newest: bool) -> Result<Option<Way>> {
        let number = match &filter.queue {
            None => None,
            Some(name) => match self.known.find(self.db, name)? {
                Some(queue) => Some(queue.number),
                None => return Ok(None),
            },
        };
        let way = match (filter.state, number, &filter.key) {
            (Some(State::Done), ..) => Way::Done,
            (_, number, Some(key)) => {
                let queues = match number {
                    Some(number) => vec![number],
                    None => self.db.all(Sql::QueueAll, [], |row| row.get(at!(QueueAll.number)))?,
                };
                let mut ids = Vec::new();
                for queue in queues {
                    ids.extend(self.db.all(Sql::KeyIds, bind!(KeyIds { queue, key }), |row| {
                        row.get::<_, i64>(at!(KeyIds.id))
                    })?);
                }
                Way::Ids(ids)
            }
            (Some(State::Processing), ..) => Way::Ids(self.leases()?.keys().copied().collect()),
            (Some(State::Failed), Some(number), None) => Way::FailedOf(number),
            (Some(State::Failed), None, None) => Way::Failed,
            _ => Way::All,
        };
        Ok(Some(match way {
            Way::Ids(mut ids) => {
                ids.sort_unstable();
                ids.dedup();
                if newest {
                    ids.reverse();
                }
                Way::Ids(ids)
            }
            other => other,
        }))
    }

    /// The next rows behind `at`.
    fn stretch(&self, way: &Way, at: i64, newest: bool, limit: usize) -> Result<Vec<Row>> {
        let count = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = match (way, newest) {
            (Way::Ids(ids), _) => {
                let behind = |id: &&i64| if newest { **id < at } else { **id > at };
                let mut rows = Vec::new();
                for id in ids.iter().filter(behind) {
                    if rows.len() == limit {
                        break;
                    }
                    rows.extend(Row::load(self.db, *id)?);
                }
                return Ok(rows);
            }
            (Way::FailedOf(number), newest) => {
                let sql =
                    if newest { Sql::ListFailedQueueNewest } else { Sql::ListFailedQueueOldest };
                return self.db.all(
                    sql,
                    bind!(ListFailedQueueOldest { from: at, queue: number, limit: count }),
                    Row::read,
                );
            }
            (Way::All, false) => Sql::ListOldest,
            (Way::All, true) => Sql::ListNewest,
            (Way::Done, false) => Sql::ListDoneOldest,
            (Way::Done, true) => Sql::ListDoneNewest,
            (Way::Failed, false) => Sql::ListFailedOldest,
            (Way::Failed, true) => Sql::ListFailedNewest,
        };
        self.db.all(sql, bind!(ListFailedNewest { from: at, limit: count }), Row::read)
    }

    fn leases(&mut self) -> Result<&HashMap<i64, Arc<Lease>>> {
        if self.leases.is_none() {
            let mut by_id = HashMap::new();
            for lease in self.db.all(Sql::LeaseAll, [], Lease::read)? {
                let lease = Arc::new(lease);
                by_id.extend(lease.ids.iter().map(|id| (*id, lease.clone())));
            }
            self.leases = Some(by_id);
        }
        Ok(self.leases.get_or_insert_default())
    }

    fn show(&mut self, row: Row) -> Result<Task> {
        let queue: Arc<Queue> = self.known.numbered(self.db, row.queue)?;
        let lease = if row.state() == State::Processing {
            self.leases()?.get(&row.id).cloned()
        } else {
            None
        };
        Ok(row.into_task(&queue, lease.as_deref(), Vec::new()))
    }

    fn with_payload(&self, mut task: Task) -> Result<Task> {
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

/// How tasks are come by.
enum Way {
    All,
    Done,
    Failed,
    FailedOf(u32),
    /// These, in the order they are wanted.
    Ids(Vec<i64>),
}
