//! A page of tasks: by the narrowest way there is, and after a bounded look.

use gristmill_core::{
    Limits, ListRequest, Order, Page, Result, State, Task, TaskFilter, TaskId, Timestamp,
};

use crate::read::Lister;
use crate::row::Row;
use crate::sql::{Sql, at, bind};
use crate::stats::Counts;

/// Tasks read in one statement.
const STRIDE: usize = 500;
/// For each that is wanted so many are looked at before it is asked how else they might be
/// found.
const FIRST: usize = 16;
/// Most entries of the claim order that are read for a page because no index has a queue's
/// tasks by their ids: half a million take 30 ms. A queue with more is walked to. An index
/// of queues would lead to it at once, and cost every task half a microsecond at its put
/// (3.4 of bare inserts) and nearly that at its end.
const READ: u64 = 1_000_000;
/// The same for who writes, behind whom others wait.
const READ_WRITING: u64 = 20_000;

/// What is looked for.
pub(crate) struct Look<'f> {
    filter: &'f TaskFilter,
    newest: bool,
    limit: usize,
    /// How many may still be looked at.
    left: usize,
    /// Behind which task it goes on.
    at: i64,
    looked: u64,
    found: Vec<Task>,
}

impl<'f> Look<'f> {
    pub(crate) fn new(
        filter: &'f TaskFilter,
        after: Option<TaskId>,
        newest: bool,
        limit: usize,
        looks: usize,
    ) -> Self {
        let start = if newest { i64::MAX } else { i64::MIN };
        let at = after.map_or(start, |id| id.0);
        Look { filter, newest, limit, left: looks.max(1), at, looked: 0, found: Vec::new() }
    }

    const fn is_full(&self) -> bool {
        self.found.len() >= self.limit
    }

    fn missing(&self) -> i64 {
        int(self.limit.saturating_sub(self.found.len()))
    }

    /// Turns ids so that what comes later is larger.
    const fn turned(&self, id: i64) -> i64 {
        if self.newest { id.saturating_neg() } else { id }
    }

    const fn sign(&self) -> i64 {
        if self.newest { -1 } else { 1 }
    }

    /// Looked at one.
    fn count(&mut self, id: i64) {
        self.at = id;
        self.looked += 1;
        self.left = self.left.saturating_sub(1);
    }

    /// Where to go on, when it did not come to the end.
    const fn here(&self) -> Option<TaskId> {
        Some(TaskId(self.at))
    }
}

fn int(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// How tasks are come by.
enum Way {
    Group(String),
    Source(String),
    Done,
    Failed,
    FailedOf(u32),
    /// These, in the order they are wanted.
    Ids(Vec<i64>),
}

impl Lister<'_, '_> {
    /// A page of tasks by id.
    pub(crate) fn list(mut self, request: &ListRequest, limits: &Limits) -> Result<Page> {
        let limit = request.limit.clamp(1, limits.page);
        let newest = request.order == Order::Newest;
        let mut look = Look::new(&request.filter, request.after, newest, limit, limits.looks);
        let next = self.go(&mut look, READ, &mut |_| true)?;
        let tasks = look.found.into_iter().map(|task| self.with_payload(task));
        Ok(Page { tasks: tasks.collect::<Result<_>>()?, next, looked: look.looked })
    }

    /// Tasks that match, without their payloads, and where to go on. For who may not
    /// look long.
    pub(crate) fn visit(
        mut self,
        mut look: Look<'_>,
        mut meant: impl FnMut(&Task) -> bool,
    ) -> Result<(Vec<Task>, Option<TaskId>)> {
        let next = self.go(&mut look, READ_WRITING, &mut meant)?;
        Ok((look.found, next))
    }

    fn go(
        &mut self,
        look: &mut Look<'_>,
        most: u64,
        meant: &mut dyn FnMut(&Task) -> bool,
    ) -> Result<Option<TaskId>> {
        let number = match &look.filter.queue {
            None => None,
            Some(name) => match self.known.find(self.db, name)? {
                Some(queue) => Some(queue.number),
                None => return Ok(None),
            },
        };
        if let Some(way) = self.way(look, number)? {
            return self.rows(look, &way, meant);
        }
        // Where most tasks match, this is all there is to do.
        let first = look.limit.saturating_mul(FIRST).clamp(1, (look.left / 2).max(1));
        let later = look.left.saturating_sub(first);
        look.left -= later;
        let next = self.walk(look, number, meant)?;
        look.left += later;
        if next.is_none() || look.is_full() || look.left == 0 {
            return Ok(next);
        }
        if let Some(ids) = self.set(look, number, most)? {
            let whole = int(ids.len()) < look.missing();
            let next = self.rows(look, &Way::Ids(ids), meant)?;
            return Ok(next.or_else(|| (!whole).then_some(TaskId(look.at))));
        }
        self.walk(look, number, meant)
    }

    /// The narrowest way to what the filter asks for; none but to walk along all.
    fn way(&mut self, look: &Look<'_>, number: Option<u32>) -> Result<Option<Way>> {
        let filter = look.filter;
        let ids = match (filter.state, &filter.key) {
            (state, Some(key)) => {
                let done = state == Some(State::Done);
                let mut ids = Vec::new();
                for queue in self.queues(number)? {
                    ids.extend(if done {
                        self.db.all(Sql::DoneKeyIds, bind!(DoneKeyIds { queue, key }), id)?
                    } else {
                        self.db.all(Sql::KeyIds, bind!(KeyIds { queue, key }), id)?
                    });
                }
                ids
            }
            (Some(State::Done), None) => return Ok(Some(Way::Done)),
            (Some(State::Processing), None) => self.held(number)?,
            (Some(State::Failed), None) => {
                return Ok(Some(number.map_or(Way::Failed, Way::FailedOf)));
            }
            (Some(State::Pending) | None, None) => {
                return Ok(match (&filter.group, &filter.source) {
                    (Some(group), _) => Some(Way::Group(group.clone())),
                    (None, Some(source)) => Some(Way::Source(source.clone())),
                    (None, None) => None,
                });
            }
        };
        Ok(Some(Way::Ids(in_order(ids, look.newest))))
    }

    /// The queue, or all of them.
    fn queues(&self, number: Option<u32>) -> Result<Vec<u32>> {
        match number {
            Some(number) => Ok(vec![number]),
            None => self.db.all(Sql::QueueAll, [], |row| row.get(at!(QueueAll.number))),
        }
    }

    /// What is under a lease.
    fn held(&mut self, number: Option<u32>) -> Result<Vec<i64>> {
        let leases = self.leases()?.iter();
        let of = leases.filter(|(_, held)| number.is_none_or(|number| held.lease.queue == number));
        Ok(of.map(|(id, _)| *id).collect())
    }

    /// Shows a row, and takes it where it is meant.
    fn take(
        &mut self,
        look: &mut Look<'_>,
        row: Row,
        meant: &mut dyn FnMut(&Task) -> bool,
    ) -> Result<()> {
        let task = self.show(row)?;
        if look.filter.matches(&task) && meant(&task) {
            look.found.push(task);
        }
        Ok(())
    }

    /// Along all tasks by their ids; what cannot fit is passed by without being read.
    fn walk(
        &mut self,
        look: &mut Look<'_>,
        queue: Option<u32>,
        meant: &mut dyn FnMut(&Task) -> bool,
    ) -> Result<Option<TaskId>> {
        let (ends, walks, edge) = match look.newest {
            true => (Sql::WalkEndNewest, Sql::WalkNewest, i64::MIN),
            false => (Sql::WalkEndOldest, Sql::WalkOldest, i64::MAX),
        };
        let (started, rows) = (look.at, int(look.left.saturating_sub(1)));
        let end: Option<i64> =
            self.db.one(ends, bind!(WalkEndOldest { from: started, rows }), id)?;
        let filter = look.filter;
        let micros = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
        loop {
            let limit = look.missing();
            let ids: Vec<i64> = self.db.all(
                walks,
                bind!(WalkOldest {
                    from: look.at,
                    end: end.unwrap_or(edge),
                    queue,
                    pending: filter.state == Some(State::Pending),
                    blocked: filter.blocked,
                    by: micros(filter.runs_by),
                    later: micros(filter.runs_after),
                    claims: filter.claims_over,
                    error: &filter.error_contains,
                    limit,
                }),
                id,
            )?;
            let last = int(ids.len()) < limit;
            for id in ids {
                look.at = id;
                if let Some(row) = Row::load(self.db, id)? {
                    self.take(look, row, meant)?;
                }
            }
            if look.is_full() || last {
                break;
            }
        }
        let next = match (look.is_full(), end) {
            (true, _) => look.here(),
            (false, Some(end)) => {
                look.at = end;
                look.here()
            }
            (false, None) => {
                look.at = edge;
                None
            }
        };
        let (first, last) = match look.newest {
            true => (look.at, started.saturating_sub(1)),
            false => (started.saturating_add(1), look.at),
        };
        let looked = self.db.one(Sql::WalkLooked, bind!(WalkLooked { first, last }), |row| {
            row.get::<_, i64>(at!(WalkLooked.looked))
        })?;
        let looked = usize::try_from(looked.unwrap_or_default()).unwrap_or_default();
        look.looked += looked as u64;
        look.left = look.left.saturating_sub(looked);
        Ok(next)
    }

    /// What is to be read of tasks that match, where the kept counts say that they are so
    /// few that an index of theirs can be read through; none where they are not.
    fn set(&self, look: &Look<'_>, number: Option<u32>, most: u64) -> Result<Option<Vec<i64>>> {
        let filter = look.filter;
        let narrow = number.is_some() || filter.blocked.is_some();
        let asks_more = filter.error_contains.is_some() || filter.claims_over.is_some();
        if !narrow || asks_more {
            return Ok(None);
        }
        let counts = self.db.all(Sql::CountAll, [], Counts::read)?;
        let mut sum = [0_u64; 6];
        for count in counts.iter().filter(|c| number.is_none_or(|number| c.queue == number)) {
            for (sum, n) in sum.iter_mut().zip(count.standing) {
                *sum = sum.saturating_add(n);
            }
        }
        let [ready, delayed, blocked, processing, failed, _] = sum;
        let ordered = match (filter.blocked, filter.runs_by, filter.runs_after) {
            (Some(true), ..) => 0,
            (_, None, Some(_)) => delayed,
            (_, Some(_), None) => ready,
            _ => ready + delayed,
        };
        let behind = if filter.blocked == Some(false) { 0 } else { blocked };
        let others = if filter.state.is_none() { processing + failed } else { 0 };
        if ordered + behind + others > most {
            return Ok(None);
        }
        self.gather(look, number).map(Some)
    }

    /// The next of those that stand in the claim order, blocked, under a lease or failed.
    fn gather(&self, look: &Look<'_>, number: Option<u32>) -> Result<Vec<i64>> {
        let filter = look.filter;
        let (sign, from, limit) = (look.sign(), look.turned(look.at), look.missing());
        let mut ids: Vec<i64> = Vec::new();
        let later = filter.runs_after.map_or(i64::MIN, Timestamp::as_micros);
        let by = filter.runs_by.map_or(i64::MAX, Timestamp::as_micros);
        let ready = if look.newest { Sql::LevelIdsNewest } else { Sql::LevelIdsOldest };
        for queue in self.queues(number)? {
            if filter.blocked != Some(true) {
                let mut after = i64::MIN;
                while let Some(priority) =
                    self.db.one(Sql::ReadyLevel, bind!(ReadyLevel { queue, after }), |row| {
                        row.get::<_, i64>(at!(ReadyLevel.priority))
                    })?
                {
                    ids.extend(self.db.all(
                        ready,
                        bind!(LevelIdsOldest { queue, priority, later, by, from: look.at, limit }),
                        id,
                    )?);
                    after = priority;
                }
            }
            if filter.state.is_none() {
                ids.extend(self.db.all(
                    Sql::FailedIds,
                    bind!(FailedIds { queue, sign, from, limit }),
                    id,
                )?);
            }
        }
        if filter.blocked != Some(false) {
            ids.extend(self.db.all(
                Sql::BlockedIds,
                bind!(BlockedIds { sign, from, queue: number, limit }),
                id,
            )?);
        }
        if filter.state.is_none() {
            for lease in self.db.all(Sql::LeaseAll, [], crate::lease::Lease::read)? {
                if number.is_none_or(|number| lease.queue == number) {
                    ids.extend(lease.ids.into_iter().filter(|id| look.turned(*id) > from));
                }
            }
        }
        let mut ids = in_order(ids, look.newest);
        ids.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(ids)
    }

    /// Along the rows of a way.
    fn rows(
        &mut self,
        look: &mut Look<'_>,
        way: &Way,
        meant: &mut dyn FnMut(&Task) -> bool,
    ) -> Result<Option<TaskId>> {
        loop {
            let wanted = STRIDE.min(look.left);
            let rows = self.stretch(way, look, wanted)?;
            let last = rows.len() < wanted;
            for row in rows {
                look.count(row.id);
                self.take(look, row, meant)?;
                if look.is_full() {
                    return Ok(look.here());
                }
            }
            if last {
                return Ok(None);
            }
            if look.left == 0 {
                return Ok(look.here());
            }
        }
    }

    /// The next rows.
    fn stretch(&self, way: &Way, look: &Look<'_>, limit: usize) -> Result<Vec<Row>> {
        let (from, count) = (look.at, int(limit));
        let sql = match (way, look.newest) {
            (Way::Ids(ids), newest) => {
                let behind = |id: &&i64| if newest { **id < from } else { **id > from };
                return self.loaded(ids.iter().filter(behind).copied(), limit);
            }
            (Way::Group(grp), newest) => {
                let sql = if newest { Sql::GroupNewest } else { Sql::GroupOldest };
                let ids = self.db.all(sql, bind!(GroupOldest { grp, from, limit: count }), id)?;
                return self.loaded(ids.into_iter(), limit);
            }
            (Way::Source(source), newest) => {
                let sql = if newest { Sql::SourceNewest } else { Sql::SourceOldest };
                return self.loaded(
                    self.db
                        .all(sql, bind!(SourceOldest { source, from, limit: count }), id)?
                        .into_iter(),
                    limit,
                );
            }
            (Way::FailedOf(queue), newest) => {
                let sql =
                    if newest { Sql::ListFailedQueueNewest } else { Sql::ListFailedQueueOldest };
                return self.db.all(
                    sql,
                    bind!(ListFailedQueueOldest { from, queue, limit: count }),
                    Row::read,
                );
            }
            (Way::Done, false) => Sql::ListDoneOldest,
            (Way::Done, true) => Sql::ListDoneNewest,
            (Way::Failed, false) => Sql::ListFailedOldest,
            (Way::Failed, true) => Sql::ListFailedNewest,
        };
        self.db.all(sql, bind!(ListFailedNewest { from, limit: count }), Row::read)
    }

    fn loaded(&self, ids: impl Iterator<Item = i64>, limit: usize) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for id in ids {
            if rows.len() == limit {
                break;
            }
            let row = match Row::load(self.db, id)? {
                Some(row) => Some(row),
                None => self.db.one(Sql::DoneById, bind!(DoneById { id }), Row::read)?,
            };
            rows.extend(row);
        }
        Ok(rows)
    }
}

fn id(row: &rusqlite::Row<'_>) -> rusqlite::Result<i64> {
    row.get(0)
}

/// Each once, in the asked direction.
fn in_order(mut ids: Vec<i64>, newest: bool) -> Vec<i64> {
    ids.sort_unstable();
    ids.dedup();
    if newest {
        ids.reverse();
    }
    ids
}
