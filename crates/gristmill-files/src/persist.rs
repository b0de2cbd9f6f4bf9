//! From what verbs touched to what is written: the entries of a frame, and how
//! durable it must be.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use gristmill_core::memory::Changes;
use gristmill_core::{Clock, Durability, Result, StoreError, TaskId, Timestamp};

use gristmill_text::LastSeenText;

use crate::apply::{self, Before};
use crate::ending_text::EndingText;
use crate::fact::Fact;
use crate::frame::Entry;
use crate::held::{Held, Unread};
use crate::schedule_text::ScheduleText;
use crate::spares::Staged;
use crate::task_file;

/// What is seen of the time is written down this often.
const SEEN: Duration = Duration::from_secs(1);

/// How a frame is written, lightest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sync {
    /// A power cut may undo it: claims, extensions, reports.
    Light,
    /// It is synced within a second.
    Relaxed,
    /// It is synced before anyone is answered.
    Full,
}

/// A frame before it is written.
#[derive(Debug)]
pub(crate) struct Draft {
    entries: Vec<Entry>,
    before: HashMap<TaskId, Before>,
    sync: Sync,
}

/// Why a group was not written.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// Nothing of it was.
    Nothing(StoreError),
    /// It may or may not have been.
    Unknown(StoreError),
}

impl Held {
    /// What the verbs since the last frame made true.
    pub(crate) fn draft(&mut self, clock: &dyn Clock, now: Timestamp) -> Result<Draft> {
        let mut draft = Draft { entries: Vec::new(), before: HashMap::new(), sync: Sync::Light };
        loop {
            let changes = self.ledger.take_changes();
            self.facts(&changes, now, &mut draft.entries);
            self.new_ids.extend(changes.caller_ids.iter().cloned());
            for (number, id) in &changes.caller_ids {
                // What is remembered is part of an answer, also without a task.
                let known = self.ledger.caller_id(*number, id);
                if let (Some(_), Some(queue)) = (known, self.ledger.queue(*number)) {
                    draft.sync = draft.sync.max(self.weight(queue.name.as_str()));
                }
            }
            for id in &changes.endings {
                // That somebody waits is part of an answer, also without a task.
                let number = self.ledger.ending_record(*id).map(|record| record.number);
                if let Some(queue) = number.and_then(|number| self.ledger.queue(number)) {
                    draft.sync = draft.sync.max(self.weight(queue.name.as_str()));
                }
            }
            let mut lost = Vec::new();
            for id in changes.tasks {
                match self.task(id, &mut draft) {
                    Ok(()) => {}
                    Err(Unread::Fault(error)) => return Err(error),
                    Err(Unread::Lost(why)) => lost.push((id, why)),
                }
            }
            if lost.is_empty() {
                self.see(clock, &mut draft);
                return Ok(draft);
            }
            // Their leaving touches more.
            for (id, why) in lost {
                self.set_aside(id, &why, now)?;
            }
        }
    }

    /// Writes down what is seen of the time, beside what is written anyway and
    /// not too often.
    fn see(&mut self, clock: &dyn Clock, draft: &mut Draft) {
        let monotonic = clock.monotonic();
        let lately = self.seen.is_some_and(|at| monotonic.saturating_sub(at) < SEEN);
        if !draft.entries.is_empty() && !lately {
            self.seen = Some(monotonic);
            let seen = LastSeenText::new(&self.ledger.see(clock));
            draft.entries.push(Entry::Fact(Box::new(Fact::Clock(seen))));
        }
    }

    fn facts(&mut self, changes: &Changes, now: Timestamp, entries: &mut Vec<Entry>) {
        let ledger = &self.ledger;
        let mut facts: Vec<Fact> = Vec::new();
        if ledger.next_id() != self.next_id {
            self.next_id = ledger.next_id();
            facts.push(Fact::NextId(self.next_id));
        }
        facts.extend(changes.queues.iter().filter_map(|n| ledger.queue(*n)).map(Fact::queue));
        for number in &changes.numbers {
            facts.extend(ledger.counters(*number).map(|c| Fact::counters(*number, c)));
            facts.extend(ledger.minute(*number, now).map(|minute| Fact::minute(*number, minute)));
        }
        for (number, id) in &changes.caller_ids {
            facts.push(Fact::caller_id(*number, id, ledger.caller_id(*number, id)));
        }
        for (number, priority) in &changes.turns {
            let turn = ledger.turn(*number, *priority);
            facts.extend(turn.map(|group| Fact::turn(*number, *priority, group)));
        }
        for (number, group) in &changes.buckets {
            facts.push(Fact::bucket(*number, group, ledger.bucket(*number, group)));
        }
        let leases = changes.leases.iter().filter_map(|token| ledger.lease_record(*token));
        facts.extend(leases.map(Fact::lease));
        for token in &changes.extended {
            facts.extend(ledger.lease_record(*token).as_ref().map(Fact::until));
        }
        for name in &changes.schedules {
            facts.push(match ledger.schedule(name) {
                Some(schedule) => Fact::Schedule(Box::new(ScheduleText::new(schedule))),
                None => Fact::NoSchedule(name.to_string()),
            });
        }
        for (kind, name) in &changes.documents {
            facts.push(match ledger.document(kind, name) {
                Some(document) => Fact::document(document),
                None => Fact::NoDocument { kind: kind.clone(), name: name.clone() },
            });
        }
        for id in &changes.endings {
            facts.push(match ledger.ending_record(*id) {
                Some(record) => Fact::Ending(EndingText::new(*id, record)),
                None => Fact::NoEnding(id.0),
            });
        }
        entries.extend(facts.into_iter().map(|fact| Entry::Fact(Box::new(fact))));
    }

    fn task(&mut self, id: TaskId, draft: &mut Draft) -> Result<(), Unread> {
        let before = self.before(id);
        let Some(record) = self.ledger.task_record(id) else {
            if let Some(known) = self.known.remove(&id) {
                draft.sync = draft.sync.max(self.weight(known.queue.as_str()));
                let queue = known.queue.to_string();
                draft.entries.push(Entry::Remove { id, queue });
                draft.before.insert(id, before);
                self.touched.insert(id);
            }
            return Ok(());
        };
        let (state, queue) = (record.task.state, record.task.queue.to_string());
        let hollow = self.ledger.is_hollow(id);
        let digest = task_file::digest(&record);
        let same = self.known.get(&id).is_some_and(|known| known.digest == digest)
            && (hollow || record.payload_len == 0);
        if same {
            if before != Before::In(state) {
                draft.entries.push(Entry::Move { state, id, queue });
                draft.before.insert(id, before);
                self.note(&record, digest);
            }
            return Ok(());
        }
        let payload = if hollow { self.payload(id)? } else { record.task.payload.bytes.clone() };
        // A file that stands is written anew: until the intent is durable, the
        // old one is all there is of the task.
        let weight = match before {
            Before::Nowhere => self.weight(&queue),
            Before::In(_) | Before::Unknown => Sync::Full,
        };
        draft.sync = draft.sync.max(weight);
        let header = task_file::header(&record, &payload);
        let payload = match record.checkpoint {
            None => payload,
            Some(_) => {
                let kept = match record.task.checkpoint.clone() {
                    Some(kept) => Some(kept),
                    None => self.kept(id)?,
                };
                [&payload[..], kept.as_deref().unwrap_or_default()].concat().into()
            }
        };
        draft.entries.push(Entry::File { state, id, queue, header, payload });
        draft.before.insert(id, before);
        self.note(&record, digest);
        Ok(())
    }

    /// How durable a change of this queue's tasks is.
    fn weight(&self, queue: &str) -> Sync {
        match self.ledger.queue_named(queue).map(|queue| queue.settings.durability) {
            Some(Durability::Relaxed) => Sync::Relaxed,
            Some(Durability::Full) | None => Sync::Full,
        }
    }

    /// Writes a frame down and does it. What it says is true, as durably as it
    /// must be, once this returns.
    pub(crate) fn write(&mut self, draft: &Draft, least: Sync) -> Result<Sync, Unwritten> {
        if draft.entries.is_empty() {
            return Ok(Sync::Light);
        }
        let sync = draft.sync.max(least);
        let mut staged = Staged::new();
        let written = apply::stage(&self.spool, &draft.entries, &mut self.spares, &mut staged)
            .and_then(|()| self.intent.append(&draft.entries));
        if let Err(error) = written {
            apply::unstage(&self.spool, &draft.entries, &staged);
            return Err(Unwritten::Nothing(error));
        }
        if sync == Sync::Full {
            let began = Instant::now();
            self.intent.sync().map_err(Unwritten::Unknown)?;
            self.synced = began.elapsed();
        }
        // Decided, unless the folder is not there any more: then the files must
        // not go to whatever is in its place.
        self.intent.in_place().map_err(|error| Unwritten::Unknown(error.into_unknown()))?;
        // If the files cannot follow now, they will: whoever has the
        // next turn rolls forward.
        let spares = (sync == Sync::Full).then_some(&mut self.spares);
        let done = apply::settle(&self.spool, &draft.entries, &draft.before, &staged, spares)
            .and_then(|()| self.intent.set_applied());
        if let Err(error) = done {
            tracing::warn!(error = %error.whole(), "the files are behind the intent");
            self.unapplied = true;
        }
        for entry in &draft.entries {
            if let Entry::File { id, .. } = entry {
                self.ledger.hollow(*id);
            }
        }
        Ok(sync)
    }
}
