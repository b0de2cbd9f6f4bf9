//! Putting: what each task becomes, and the undoing of an atomic put.

use super::state::{Remembered, Row, State, unknown_number};
use crate::policy::duplicate::{Places, Verdict, on_put, postponed_run_at, replaced_run_at};
use crate::policy::refused_follow_up::{faults, taken_back};
use crate::{
    FollowUp, NewTask, PutAnswer, PutReport, PutRequest, QueueName, Refusal, Result, StoreError,
    Task, TaskId, Timestamp,
};

/// How to take back one task's put.
enum Undo {
    Remove(TaskId),
    Restore(Box<Row>),
    /// The caller's id, or the window's name, and what was remembered under it before.
    Forget(String, Option<Remembered>),
}

/// How to take back what an atomic put did; of others nothing is remembered.
struct Undos(Option<Vec<Undo>>);

impl Undos {
    fn of(atomic: bool) -> Self {
        Undos(atomic.then(Vec::new))
    }

    fn note(&mut self, undo: impl FnOnce() -> Option<Undo>) {
        if let Undos(Some(steps)) = self {
            steps.extend(undo());
        }
    }
}

/// Who puts: only puts from outside ask for room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Outside,
    FollowUp,
}

impl State {
    /// Puts tasks on one queue.
    ///
    /// # Errors
    /// As [`Store::put`](crate::Store::put).
    pub fn put(&mut self, request: PutRequest, now: Timestamp) -> Result<PutReport> {
        if request.tasks.len() > self.limits.put_tasks {
            return Err(StoreError::invalid(format!(
                "{} tasks in one put and {} are allowed",
                request.tasks.len(),
                self.limits.put_tasks
            )));
        }
        let Some(number) = self.numbers.get(&request.queue).copied() else {
            let refusal = self.unknown(&request.queue);
            let answers = vec![PutAnswer::Refused(refusal); request.tasks.len()];
            return Ok(PutReport { answers });
        };
        let first_id = self.next_id;
        let mut undo = Undos::of(request.atomic);
        let mut report = PutReport { answers: Vec::with_capacity(request.tasks.len()) };
        let wanted: Vec<bool> = request.tasks.iter().map(|t| t.settings.is_wanted()).collect();
        for task in request.tasks {
            let answer = self.put_one(number, task, Door::Outside, now, &mut undo)?;
            report.answers.push(answer);
        }
        if request.atomic && report.has_fault() {
            report = report.undone();
            self.undo(number, undo.0.unwrap_or_default(), now);
            self.next_id = first_id;
        }
        self.count_answers(number, &report.answers, now)?;
        self.want_those(&wanted, &report.answers, now);
        Ok(report)
    }

    /// The answers to a settlement's follow-ups when one of them is refused;
    /// none is put then. Looked at before anything is changed, so that nothing
    /// has to be taken back.
    pub(super) fn refuse_follow_ups(
        &mut self,
        follow_ups: &[FollowUp],
        now: Timestamp,
    ) -> Result<Option<Vec<PutAnswer>>> {
        let mut refusals = faults(follow_ups, &self.limits);
        for (FollowUp { queue, task }, refusal) in follow_ups.iter().zip(&mut refusals) {
            let Some(number) = self.numbers.get(queue).copied() else {
                *refusal = Some(self.unknown(queue));
                continue;
            };
            if refusal.is_none()
                && let Some(PutAnswer::Refused(why)) = self.remembered(number, task, now)?
            {
                *refusal = Some(why);
            }
        }
        if refusals.iter().all(Option::is_none) {
            return Ok(None);
        }
        let answers = taken_back(refusals);
        for (FollowUp { queue, .. }, answer) in follow_ups.iter().zip(&answers) {
            if let Some(number) = self.numbers.get(queue).copied() {
                self.count_answers(number, std::slice::from_ref(answer), now)?;
            }
        }
        Ok(Some(answers))
    }

    /// Puts a follow-up of a settlement: never refused for want of room.
    pub(super) fn put_follow_up(
        &mut self,
        follow_up: FollowUp,
        now: Timestamp,
    ) -> Result<PutAnswer> {
        let FollowUp { queue, task } = follow_up;
        let Some(number) = self.numbers.get(&queue).copied() else {
            return Ok(PutAnswer::Refused(self.unknown(&queue)));
        };
        let is_wanted = task.settings.is_wanted();
        let answer = self.put_one(number, task, Door::FollowUp, now, &mut Undos::of(false))?;
        self.count_answers(number, std::slice::from_ref(&answer), now)?;
        self.want_those(&[is_wanted], std::slice::from_ref(&answer), now);
        Ok(answer)
    }

    fn unknown(&self, queue: &QueueName) -> Refusal {
        Refusal::UnknownQueue { name: queue.to_string(), suggestion: self.suggest(queue) }
    }

    /// Counts what the put finally answered, so that an undone put counts as
    /// refused and not as put.
    fn count_answers(&mut self, number: u32, answers: &[PutAnswer], now: Timestamp) -> Result<()> {
        let queue = self.queue_mut(number)?;
        let put = answers.iter().filter(|answer| answer.is_enqueued()).count() as u64;
        if put > 0 {
            queue.counters.put += put;
            queue.minute(now, |m| m.put += put);
        }
        for answer in answers {
            match answer {
                PutAnswer::Enqueued { .. } => {}
                PutAnswer::Duplicate { .. } => queue.counters.duplicate += 1,
                PutAnswer::Replaced { .. } => queue.counters.replaced += 1,
                PutAnswer::Refused(_) => queue.counters.refused += 1,
            }
        }
        Ok(())
    }

    fn put_one(
        &mut self,
        number: u32,
        new: NewTask,
        door: Door,
        now: Timestamp,
        undo: &mut Undos,
    ) -> Result<PutAnswer> {
        if let Some(refusal) = self.limits.refuse(&new) {
            return Ok(PutAnswer::Refused(refusal));
        }
        if let Some(answer) = self.remembered(number, &new, now)? {
            return Ok(answer);
        }
        let digest = new.id.as_ref().map(|_| new.payload.digest());
        let queue = self.queue_mut(number)?;
        let has_windows = queue.queue.settings.unique_for.is_some();
        let places = new.key.as_deref().map_or(Places::default(), |key| queue.places(key));
        let mut verdict = match &new.key {
            Some(_) => on_put(places, &queue.queue.settings),
            None => Verdict::Enqueue { blocked: false },
        };
        if let (Verdict::Enqueue { .. }, Some(key)) = (verdict, &new.key)
            && let Some(id) = self.window_of(number, key, now)
        {
            verdict = Verdict::Duplicate(id);
        }
        let caller_id = new.id.clone();
        let answer = match verdict {
            // It remembers its id too: the repeat gets the same answer.
            Verdict::Duplicate(id) => self.duplicate_of(id),
            Verdict::Replace(id) | Verdict::Postpone(id) => {
                let postpone = matches!(verdict, Verdict::Postpone(_));
                undo.note(|| self.rows.get(&id.0).map(|row| Undo::Restore(row.clone())));
                self.replace(id, new, postpone, now);
                PutAnswer::Replaced { id }
            }
            Verdict::Enqueue { blocked } => {
                if door == Door::Outside
                    && let Some(refusal) = self.no_room(number, new.payload.bytes.len())
                {
                    return Ok(PutAnswer::Refused(refusal));
                }
                let key = new.key.clone().filter(|_| has_windows);
                let id = self.insert(number, new, blocked, now)?;
                undo.note(|| Some(Undo::Remove(id)));
                let window = key.and_then(|key| self.open_window(number, &key, (id, now), now));
                undo.note(|| window.map(|(name, before)| Undo::Forget(name, before)));
                PutAnswer::Enqueued { id }
            }
        };
        if let (Some(caller_id), Some(digest), Some(id)) = (caller_id, digest, answer.id()) {
            let window = self.queue_mut(number)?.queue.settings.id_window;
            let known = (id, digest, now.after(window));
            let before = self.set_caller_id(number, caller_id.clone(), Some(known));
            self.note(|changes| changes.caller_ids.push((number, caller_id.clone())));
            undo.note(|| Some(Undo::Forget(caller_id, before)));
        }
        Ok(answer)
    }

    /// The answer to a put whose id was used before.
    fn remembered(
        &mut self,
        number: u32,
        new: &NewTask,
        now: Timestamp,
    ) -> Result<Option<PutAnswer>> {
        let Some(id) = &new.id else { return Ok(None) };
        let known = self.queue_mut(number)?.ids.get(id).copied();
        Ok(match known {
            Some((first, known, until)) if until > now => Some(if known == new.payload.digest() {
                self.duplicate_of(first)
            } else {
                PutAnswer::Refused(Refusal::IdReused { first })
            }),
            _ => None,
        })
    }

    fn duplicate_of(&self, id: TaskId) -> PutAnswer {
        let standing = self.rows.get(&id.0).map(|row| &row.task);
        PutAnswer::Duplicate {
            id,
            run_at: standing.map(|task| task.run_at),
            source: standing.and_then(|task| task.source.clone()),
        }
    }

    /// Why there is no room, if there is none.
    fn no_room(&self, number: u32, bytes: usize) -> Option<Refusal> {
        let queue = self.queues.get(&number)?;
        let counts = &queue.counts;
        let pending = counts.ready + counts.blocked + queue.delayed.len() as u64;
        if let Some(capacity) = queue.queue.settings.capacity
            && pending >= capacity
        {
            return Some(Refusal::QueueFull { capacity });
        }
        let tasks = (self.rows.len() + self.done.len()) as u64;
        let full = tasks >= self.max_tasks || self.bytes + bytes > self.max_bytes;
        full.then_some(Refusal::StoreFull { tasks, bytes: self.bytes })
    }

    fn insert(
        &mut self,
        number: u32,
        new: NewTask,
        blocked: bool,
        now: Timestamp,
    ) -> Result<TaskId> {
        let id = TaskId(self.next_id);
        self.next_id += 1;
        self.bytes += new.payload.bytes.len();
        let Some(queue) = self.queues.get_mut(&number) else {
            return Err(unknown_number(number));
        };
        if let Some(key) = &new.key {
            match queue.places.get_mut(key) {
                Some(places) => places.waiting = Some(id),
                None => {
                    let places = Places { waiting: Some(id), in_flight: None };
                    queue.places.insert(key.clone(), places);
                }
            }
        }
        // Made where it stays: it is large to move about.
        let mut row = Box::new(Row {
            payload_len: new.payload.bytes.len(),
            checkpoint: None,
            task: Task::new(id, queue.queue.name.clone(), new.payload, now),
            number,
            in_flight: false,
            started_releases: 0,
            lease: None,
            settled: None,
            delayed: false,
        });
        let task = &mut row.task;
        task.run_at = new.start.run_at(now);
        task.key = new.key;
        task.group = new.group;
        task.source = new.source;
        task.priority = new.priority;
        task.blocked = blocked;
        task.unique = queue.queue.settings.unique;
        task.headers = new.headers;
        task.settings = new.settings;
        if queue.enter(&mut row, now) && self.woken.last() != Some(&queue.queue.name) {
            self.woken.push(queue.queue.name.clone());
        }
        self.rows.insert(id.0, row);
        Ok(id)
    }

    /// Gives the standing task the new one's data.
    fn replace(&mut self, id: TaskId, new: NewTask, postpone: bool, now: Timestamp) {
        let longest = self
            .rows
            .get(&id.0)
            .and_then(|row| self.queues.get(&row.number))
            .and_then(|queue| queue.queue.settings.postpone_max);
        let Some(blocked) = self.rows.get(&id.0).map(|row| row.task.blocked) else {
            return;
        };
        self.leave(id.0);
        if let Some(row) = self.rows.get_mut(&id.0) {
            self.bytes = self.bytes + new.payload.bytes.len() - row.bytes();
            let task = &mut row.task;
            row.payload_len = new.payload.bytes.len();
            task.blocked = blocked;
            task.run_at = if postpone {
                postponed_run_at(task.run_at, task.created_at, new.start, now, longest)
            } else {
                replaced_run_at(task.run_at, new.start, now)
            };
            task.priority = task.priority.min(new.priority);
            task.payload = new.payload;
            task.headers = new.headers;
            task.settings = new.settings;
            // It was kept about other data.
            task.checkpoint = None;
            row.checkpoint = None;
        }
        self.enter(id.0, now);
    }

    /// Takes back what an atomic put did, last first.
    fn undo(&mut self, number: u32, undo: Vec<Undo>, now: Timestamp) {
        for step in undo.into_iter().rev() {
            match step {
                Undo::Forget(caller_id, before) => {
                    self.note(|changes| changes.caller_ids.push((number, caller_id.clone())));
                    self.set_caller_id(number, caller_id, before);
                }
                Undo::Remove(id) => {
                    self.leave(id.0);
                    self.free_place(id.0, now);
                    self.delete(id.0);
                }
                Undo::Restore(row) => {
                    let id = row.task.id.0;
                    self.leave(id);
                    let before = row.bytes();
                    if let Some(replaced) = self.rows.insert(id, row) {
                        self.bytes = self.bytes + before - replaced.bytes();
                    }
                    self.enter(id, now);
                }
            }
        }
    }
}
