//! Putting: what each task becomes.

use std::sync::Arc;

use gristmill_core::policy::duplicate::{
    Places, Verdict, on_put, postponed_run_at, replaced_run_at,
};
use gristmill_core::policy::refused_follow_up::{faults, taken_back};
use gristmill_core::{
    FollowUp, NewTask, PutAnswer, PutReport, PutRequest, Queue, QueueName, Refusal, Result,
    StoreError, TaskId, Unique,
};

use crate::batch::{EIGHT, alike};
use crate::delta::unsigned;
use crate::known::suggest;
use crate::moves::Entry;
use crate::row::{Row, encoding_number};
use crate::sql::{Sql, at, bind};
use crate::write::{Unentered, Write};
use crate::{checksum, codec};

/// Tasks of one put from which on they enter the claim order by one statement.
const MANY: usize = 8;

/// Who puts: only puts from outside ask for room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    Outside,
    FollowUp,
}

impl Write<'_, '_> {
    /// Puts tasks on one queue; one answer each.
    pub(crate) fn put(&mut self, request: &PutRequest) -> Result<PutReport> {
        if request.tasks.len() > self.limits.put_tasks {
            return Err(StoreError::invalid(format!(
                "{} tasks in one put and {} are allowed",
                request.tasks.len(),
                self.limits.put_tasks
            )));
        }
        let Some(queue) = self.known.find(self.db, &request.queue)? else {
            let refusal = self.unknown(&request.queue)?;
            let answers = vec![PutAnswer::Refused(refusal); request.tasks.len()];
            return Ok(PutReport { answers });
        };
        // One alone writes nothing that would have to be taken back, unless it
        // remembers its id.
        let undoable = request.tasks.len() > 1 || request.tasks.iter().any(|new| new.id.is_some());
        let mut report = if request.atomic && undoable {
            self.undoable(
                |write| write.put_each(&queue, &request.tasks),
                |report| !report.has_fault(),
            )?
        } else {
            self.put_each(&queue, &request.tasks)?
        };
        if request.atomic && report.has_fault() {
            report = report.undone();
        }
        self.puts += request.tasks.len();
        self.count_answers(&queue, &report.answers);
        for (task, answer) in request.tasks.iter().zip(&report.answers) {
            self.want_answered(&queue, task, answer)?;
        }
        Ok(report)
    }

    fn put_each(&mut self, queue: &Arc<Queue>, tasks: &[NewTask]) -> Result<PutReport> {
        if tasks.len() < MANY {
            return self.put_in_turn(queue, tasks);
        }
        self.unentered = Some(Unentered::default());
        let put = self.put_in_turn(queue, tasks).and_then(|report| {
            self.enter_gathered(queue)?;
            Ok(report)
        });
        self.unentered = None;
        put
    }

    fn put_in_turn(&mut self, queue: &Arc<Queue>, tasks: &[NewTask]) -> Result<PutReport> {
        let mut answers = Vec::with_capacity(tasks.len());
        let mut left = tasks;
        let takes_eight = self.takes_eight(queue);
        while !left.is_empty() {
            let eight = left.first_chunk::<EIGHT>().filter(|_| takes_eight);
            let alike = eight.map_or(0, |eight| alike(eight));
            if let Some(eight) = eight
                && alike == EIGHT
                && eight.iter().all(|task| self.limits.refuse(task).is_none())
            {
                answers.extend(self.put_eight(queue, eight)?);
                left = left.get(EIGHT..).unwrap_or_default();
                continue;
            }
            // With the one that is not alike.
            let (some, rest) = left.split_at(left.len().min(alike + 1));
            for task in some {
                answers.push(self.put_one(queue, task, Door::Outside)?);
            }
            left = rest;
        }
        Ok(PutReport { answers })
    }

    /// The answers to a settlement's follow-ups when one of them is refused;
    /// none is put then. Looked at before anything is written, so that nothing
    /// has to be taken back.
    pub(crate) fn refuse_follow_ups(
        &mut self,
        follow_ups: &[FollowUp],
    ) -> Result<Option<Vec<PutAnswer>>> {
        let mut refusals = faults(follow_ups, self.limits);
        for (FollowUp { queue, task }, refusal) in follow_ups.iter().zip(&mut refusals) {
            let Some(queue) = self.known.find(self.db, queue)? else {
                *refusal = Some(self.unknown(queue)?);
                continue;
            };
            if refusal.is_none()
                && let Some(PutAnswer::Refused(why)) = self.known_before(&queue, task)?
            {
                *refusal = Some(why);
            }
        }
        if refusals.iter().all(Option::is_none) {
            return Ok(None);
        }
        let answers = taken_back(refusals);
        for (FollowUp { queue, .. }, answer) in follow_ups.iter().zip(&answers) {
            if let Some(queue) = self.known.find(self.db, queue)? {
                self.count_answers(&queue, std::slice::from_ref(answer));
            }
        }
        Ok(Some(answers))
    }

    /// Puts a follow-up of a settlement, which is not refused: never for want of
    /// room either.
    pub(crate) fn put_follow_up(&mut self, follow_up: &FollowUp) -> Result<PutAnswer> {
        let FollowUp { queue, task } = follow_up;
        let Some(queue) = self.known.find(self.db, queue)? else {
            return Ok(PutAnswer::Refused(self.unknown(queue)?));
        };
        let answer = self.put_one(&queue, task, Door::FollowUp)?;
        self.count_answers(&queue, std::slice::from_ref(&answer));
        self.want_answered(&queue, task, &answer)?;
        Ok(answer)
    }

    fn unknown(&self, queue: &QueueName) -> Result<Refusal> {
        Ok(Refusal::UnknownQueue { name: queue.to_string(), suggestion: suggest(self.db, queue)? })
    }

    /// Counts what was finally answered, so that an undone put counts as
    /// refused and not as put.
    fn count_answers(&mut self, queue: &Queue, answers: &[PutAnswer]) {
        let counters = &mut self.delta(queue.number).counters;
        for answer in answers {
            match answer {
                PutAnswer::Enqueued { .. } => counters.put += 1,
                PutAnswer::Duplicate { .. } => counters.duplicate += 1,
                PutAnswer::Replaced { .. } => counters.replaced += 1,
                PutAnswer::Refused(_) => counters.refused += 1,
            }
        }
    }

    fn put_one(&mut self, queue: &Arc<Queue>, new: &NewTask, door: Door) -> Result<PutAnswer> {
        if let Some(refusal) = self.limits.refuse(new) {
            return Ok(PutAnswer::Refused(refusal));
        }
        if let Some(answer) = self.known_before(queue, new)? {
            return Ok(answer);
        }
        let id = new.id.as_deref().map(|id| (id, new.payload.digest()));
        let mut verdict = match new.key.as_deref() {
            Some(key) => on_put(self.places(queue, key)?, &queue.settings),
            None => Verdict::Enqueue { blocked: false },
        };
        if let (Verdict::Enqueue { .. }, Some(key)) = (verdict, new.key.as_deref())
            && let Some(id) = self.window_of(queue, key)?
        {
            verdict = Verdict::Duplicate(id);
        }
        let answer = match verdict {
            // It remembers its id too: the repeat gets the same answer.
            Verdict::Duplicate(id) => self.duplicate_of(id)?,
            Verdict::Replace(id) | Verdict::Postpone(id) => {
                self.replace(queue, id, new, matches!(verdict, Verdict::Postpone(_)))?;
                PutAnswer::Replaced { id }
            }
            Verdict::Enqueue { blocked } => {
                if door == Door::Outside
                    && let Some(capacity) = queue.settings.capacity
                    && unsigned(self.pending(queue.number)?) >= capacity
                {
                    return Ok(PutAnswer::Refused(Refusal::QueueFull { capacity }));
                }
                let id = self.insert(queue, new, blocked)?;
                self.open_window(queue, new.key.as_deref(), (id, self.now))?;
                PutAnswer::Enqueued { id }
            }
        };
        if let (Some((caller_id, digest)), Some(id)) = (id, answer.id()) {
            let until = self.now.after(queue.settings.id_window).as_micros();
            self.db.run(
                Sql::PutIdRemember,
                bind!(PutIdRemember {
                    queue: queue.number,
                    id: caller_id,
                    task: id.0,
                    digest: digest.as_slice(),
                    until
                }),
            )?;
        }
        Ok(answer)
    }

    /// The answer that stands before the key is looked at: its id was used
    /// before, or it is about nothing.
    fn known_before(&mut self, queue: &Arc<Queue>, new: &NewTask) -> Result<Option<PutAnswer>> {
        if let Some(id) = &new.id
            && let Some(answer) = self.remembered(queue, id, &new.payload.digest())?
        {
            return Ok(Some(answer));
        }
        Ok(self.subject_fault(queue, new.key.as_deref())?.map(PutAnswer::Refused))
    }

    /// The answer to a put whose id was used before.
    pub(crate) fn remembered(
        &self,
        queue: &Queue,
        id: &str,
        digest: &[u8; 16],
    ) -> Result<Option<PutAnswer>> {
        let known = self.db.one(
            Sql::PutIdKnown,
            bind!(PutIdKnown { queue: queue.number, id, now: self.now.as_micros() }),
            |row| {
                Ok((
                    TaskId(row.get(at!(PutIdKnown.task))?),
                    row.get::<_, Vec<u8>>(at!(PutIdKnown.digest))?,
                ))
            },
        )?;
        match known {
            None => Ok(None),
            Some((first, known)) if known == digest => self.duplicate_of(first).map(Some),
            Some((first, _)) => Ok(Some(PutAnswer::Refused(Refusal::IdReused { first }))),
        }
    }

    fn duplicate_of(&self, id: TaskId) -> Result<PutAnswer> {
        let standing = self.db.one(Sql::PutStanding, bind!(PutStanding { id: id.0 }), |row| {
            Ok((
                row.get::<_, i64>(at!(PutStanding.run_at))?,
                row.get::<_, Option<String>>(at!(PutStanding.source))?,
            ))
        })?;
        let (run_at, source) = match standing {
            Some((run_at, source)) => (Some(run_at), source),
            None => (None, None),
        };
        Ok(PutAnswer::Duplicate {
            id,
            run_at: run_at.map(gristmill_core::Timestamp::from_micros),
            source,
        })
    }

    /// Who holds the places of a key.
    pub(crate) fn places(&self, queue: &Queue, key: &str) -> Result<Places> {
        let mut places = Places::default();
        self.db.with(Sql::Places, |statement| {
            let mut rows = statement.query(bind!(Places { queue: queue.number, key }))?;
            while let Some(row) = rows.next()? {
                let holder = Some(TaskId(row.get(at!(Places.id))?));
                if row.get::<_, i64>(at!(Places.place))? == 0 {
                    places.waiting = holder;
                } else {
                    places.in_flight = holder;
                }
            }
            Ok(())
        })?;
        Ok(places)
    }

    fn insert(&mut self, queue: &Queue, new: &NewTask, blocked: bool) -> Result<TaskId> {
        let id = self.next_id()?;
        let run_at = new.start.run_at(self.now);
        let unique_active = queue.settings.unique == Unique::Active;
        let encoding = encoding_number(new.payload.encoding);
        let payload: &[u8] = new.payload.bytes.as_ref();
        let checksum = checksum::of(new.payload.encoding, payload);
        let says_more = new.key.is_some() || new.group.is_some() || new.source.is_some();
        let says_more = says_more || !new.headers.is_empty() || !new.settings.is_empty();
        if says_more || blocked {
            self.db.run(
                Sql::PutTask,
                bind!(PutTask {
                    id: id.0,
                    queue: queue.number,
                    key: new.key,
                    blocked,
                    unique_active,
                    priority: new.priority,
                    run_at: run_at.as_micros(),
                    created_at: self.now.as_micros(),
                    encoding,
                    grp: new.group,
                    source: new.source,
                    headers: codec::headers_text(&new.headers)?,
                    settings: codec::task_settings_text(&new.settings)?,
                    payload,
                    checksum
                }),
            )?;
        } else {
            self.db.run(
                Sql::PutPlain,
                bind!(PutPlain {
                    id: id.0,
                    queue: queue.number,
                    unique_active,
                    priority: new.priority,
                    run_at: run_at.as_micros(),
                    created_at: self.now.as_micros(),
                    encoding,
                    payload,
                    checksum
                }),
            )?;
        }
        if blocked {
            self.block(queue, id.0)?;
        } else {
            let entry = Entry {
                id: id.0,
                priority: new.priority,
                run_at,
                source: new.source.as_deref(),
                group: new.group.as_deref(),
            };
            self.enter_new(queue, &entry)?;
        }
        Ok(id)
    }

    /// Gives the standing task the new one's data.
    fn replace(&mut self, queue: &Queue, id: TaskId, new: &NewTask, postpone: bool) -> Result<()> {
        // It may be one of the same put.
        self.enter_gathered(queue)?;
        let mut row = Row::load(self.db, id.0)?
            .ok_or_else(|| StoreError::corrupt(format!("task {id} vanished while replaced")))?;
        self.leave(&row)?;
        row.run_at = if postpone {
            let longest = queue.settings.postpone_max;
            postponed_run_at(row.run_at, row.created_at, new.start, self.now, longest)
        } else {
            replaced_run_at(row.run_at, new.start, self.now)
        };
        row.priority = row.priority.min(new.priority);
        self.db.run(
            Sql::PutReplace,
            bind!(PutReplace {
                priority: row.priority,
                run_at: row.run_at.as_micros(),
                encoding: encoding_number(new.payload.encoding),
                headers: codec::headers_text(&new.headers)?,
                settings: codec::task_settings_text(&new.settings)?,
                payload: new.payload.bytes.as_ref(),
                checksum: checksum::of(new.payload.encoding, &new.payload.bytes),
                id: id.0
            }),
        )?;
        if row.blocked { self.block(queue, id.0) } else { self.enter(queue, &row.entry()) }
    }
}
