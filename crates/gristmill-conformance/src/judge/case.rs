//! The case before the judge: what was written down, brought together by call and
//! answer, and by task.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::event::{Ending, FaultKind, Given, How, PutSaid, SettleSaid, Wanted, Went};
use super::journal::History;
use super::plan::{Plan, QueueRules};
use super::standing::{Standing, Stands};

/// A call's two ends, in lines of the history and in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// The line of the call.
    pub(crate) call: usize,
    /// The line of its answer.
    pub(crate) answer: Option<usize>,
    /// When it was made.
    pub(crate) called: u64,
    /// When its answer was heard; for ever when none was.
    pub(crate) heard: u64,
}

impl Span {
    /// Its lines, for a story.
    pub(crate) fn lines(&self) -> Vec<usize> {
        [Some(self.call), self.answer].into_iter().flatten().collect()
    }
}

/// What is known of a call's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The answer says.
    Told,
    /// It may have happened.
    Unknown,
    /// Nothing was written.
    Nothing,
}

/// One task of a put, a follow-up or a fire.
#[derive(Debug)]
pub(crate) struct PutTry {
    pub(crate) queue: String,
    pub(crate) wanted: Wanted,
    /// When the put, or the commit it was a part of, was answered.
    pub(crate) span: Span,
    pub(crate) effect: Effect,
    pub(crate) said: Option<PutSaid>,
    /// Tasks of one call have the same.
    pub(crate) batch: usize,
    pub(crate) atomic: bool,
    /// When the commit of its transaction was called.
    pub(crate) committing: Option<u64>,
}

impl PutTry {
    /// The task that it became, if it became one of its own.
    pub(crate) fn enqueued(&self) -> Option<i64> {
        match self.said {
            Some(PutSaid::Enqueued(id)) if self.effect == Effect::Told => Some(id),
            _ => None,
        }
    }
}

/// A claim.
#[derive(Debug)]
pub(crate) struct ClaimTry {
    pub(crate) queue: String,
    pub(crate) max: usize,
    pub(crate) source: Option<String>,
    pub(crate) span: Span,
    pub(crate) effect: Effect,
    pub(crate) takes: Vec<usize>,
}

/// A task that was given to a claim.
#[derive(Debug)]
pub(crate) struct Take {
    pub(crate) queue: String,
    pub(crate) token: String,
    pub(crate) given: Given,
    pub(crate) span: Span,
    pub(crate) lease: u64,
    /// The wall clock of the claimer when it heard of it.
    pub(crate) wall: i64,
}

/// A settlement.
#[derive(Debug)]
pub(crate) struct EndTry {
    pub(crate) ending: Ending,
    pub(crate) span: Span,
    pub(crate) effect: Effect,
    pub(crate) said: Option<SettleSaid>,
}

impl EndTry {
    /// Where the task went by it, if it is on record.
    pub(crate) fn went(&self) -> Option<Went> {
        match self.said {
            Some(SettleSaid::Recorded { went, .. }) => Some(went),
            _ => None,
        }
    }

    /// Whether the task is gone by it for certain.
    pub(crate) fn deleted(&self) -> bool {
        matches!(self.went(), Some(Went::Done | Went::Cancelled))
    }

    /// Whether the task may have left its place by it: gone, or failed.
    pub(crate) fn may_have_ended(&self) -> bool {
        match (self.effect, self.went()) {
            (_, Some(went)) => went != Went::Pending,
            (Effect::Unknown, _) => !matches!(self.ending.how, How::Retry | How::Release),
            // Recorded before, by a try of the same that went without an answer.
            _ => self.said == Some(SettleSaid::AlreadyRecorded),
        }
    }
}

/// An extension.
#[derive(Debug)]
pub(crate) struct ExtendTry {
    pub(crate) lease: u64,
    pub(crate) span: Span,
    /// Whether the lease lasts; unknown when nothing was answered.
    pub(crate) lasts: Option<bool>,
}

/// An operator's action on one task.
#[derive(Debug, Clone)]
pub(crate) struct Act {
    pub(crate) action: String,
    pub(crate) span: Span,
    /// `moved` and the like; unknown when nothing was answered.
    pub(crate) said: Option<String>,
}

impl Act {
    /// Whether it was done, or may have been.
    pub(crate) fn may_be(&self, actions: &[&str]) -> bool {
        let said = self.said.as_deref();
        actions.contains(&self.action.as_str())
            && said.is_none_or(|said| ["moved", "cancel_requested"].contains(&said))
    }

    /// Whether the task is gone by it for certain.
    pub(crate) fn deleted(&self) -> bool {
        self.said.as_deref() == Some("moved") && self.action != "retry"
    }
}

/// A queue that was stopped or resumed.
#[derive(Debug)]
pub(crate) struct PauseTry {
    pub(crate) queue: String,
    pub(crate) paused: bool,
    pub(crate) span: Span,
    pub(crate) effect: Effect,
}

/// A fire of a schedule.
#[derive(Debug)]
pub(crate) struct FireTry {
    pub(crate) schedule: String,
    pub(crate) instant: i64,
    pub(crate) payload: String,
    pub(crate) span: Span,
    pub(crate) effect: Effect,
    pub(crate) fired: bool,
}

/// Everything that is known of one task, by number.
#[derive(Debug, Default)]
pub(crate) struct Life {
    /// Puts that were answered with it.
    pub(crate) puts: Vec<usize>,
    pub(crate) takes: Vec<usize>,
    pub(crate) ends: Vec<usize>,
    pub(crate) acts: Vec<Act>,
    /// When somebody heard that its last lease's end failed it.
    pub(crate) expired: Vec<u64>,
}

/// A time in which something was wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble {
    pub(crate) kind: FaultKind,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) history: &'a History,
    pub(crate) plan: &'a Plan,
    pub(crate) standing: &'a Standing,
    pub(crate) puts: Vec<PutTry>,
    pub(crate) claims: Vec<ClaimTry>,
    pub(crate) takes: Vec<Take>,
    pub(crate) ends: Vec<EndTry>,
    pub(crate) extends: HashMap<String, Vec<ExtendTry>>,
    pub(crate) pauses: Vec<PauseTry>,
    pub(crate) fires: Vec<FireTry>,
    pub(crate) lives: BTreeMap<i64, Life>,
    pub(crate) troubles: Vec<Trouble>,
    pub(crate) stands: HashMap<i64, &'a Stands>,
    /// Numbers under which each payload was seen.
    pub(crate) seen: HashMap<String, HashSet<i64>>,
    /// Actions on whole queues that went without an answer.
    pub(crate) blind_acts: Vec<(Option<String>, Act)>,
}

/// Clocks of one machine agree, and still a lease may end this much early.
pub(crate) const SLACK: u64 = 3_000;

impl Case<'_> {
    /// What is known of a queue.
    pub(crate) fn rules(&self, queue: &str) -> QueueRules {
        self.plan.queue(queue).cloned().unwrap_or_default()
    }

    /// Whether a claim of the queue that was made between the two times may have
    /// been forgotten by the later one.
    pub(crate) fn may_forget(&self, queue: &str, from: u64, to: u64) -> bool {
        !self.rules(queue).claims_durable && self.in_trouble(from, to, |kind| kind.forgets_claims())
    }

    /// Whether the clock jumped between the two times.
    pub(crate) fn jumped(&self, from: u64, to: u64) -> bool {
        self.in_trouble(from, to, |kind| kind == FaultKind::Clock)
    }

    pub(crate) fn in_trouble(&self, from: u64, to: u64, which: impl Fn(FaultKind) -> bool) -> bool {
        let touches = |trouble: &Trouble| trouble.from <= to && from <= trouble.to;
        self.troubles.iter().any(|trouble| which(trouble.kind) && touches(trouble))
    }

    /// The acts that were or may have been on this task.
    pub(crate) fn acts<'b>(&'b self, task: i64, queue: &'b str) -> impl Iterator<Item = &'b Act> {
        let named = self.lives.get(&task).into_iter().flat_map(|life| &life.acts);
        let blind = self
            .blind_acts
            .iter()
            .filter(move |(of, _)| of.as_deref().is_none_or(|of| of == queue));
        named.chain(blind.map(|(_, act)| act))
    }

    /// When the lease of a take ends at the earliest, unless its task is settled.
    pub(crate) fn lease_end(&self, take: &Take) -> u64 {
        let mut until = take.span.called + take.lease;
        for extend in self.extends.get(&take.token).into_iter().flatten() {
            let so = extend.span.called + extend.lease;
            match extend.lasts {
                Some(true) => until = so,
                Some(false) => {}
                None => until = until.min(so),
            }
        }
        until
    }

    /// Until when a task is under the lease of this take, at the least.
    pub(crate) fn held_until(&self, take: &Take) -> u64 {
        let mut until = self.lease_end(take);
        let life = self.lives.get(&take.given.task);
        for end in life.into_iter().flat_map(|life| &life.ends).map(|end| &self.ends[*end]) {
            let counts = end.effect == Effect::Unknown
                || matches!(
                    end.said,
                    Some(SettleSaid::Recorded { .. } | SettleSaid::AlreadyRecorded)
                );
            if end.ending.token == take.token && counts {
                until = until.min(end.span.called);
            }
        }
        until
    }

    /// The first moment after this one at which a task may have left its key's
    /// places.
    pub(crate) fn may_end(&self, task: i64, queue: &str, after: u64) -> u64 {
        let mut first = u64::MAX;
        let life = self.lives.get(&task);
        for end in life.into_iter().flat_map(|life| &life.ends).map(|end| &self.ends[*end]) {
            if end.may_have_ended() && end.span.heard >= after {
                first = first.min(end.span.called);
            }
        }
        for act in self.acts(task, queue) {
            if act.may_be(&["cancel", "discard", "resolve", "retry"]) && act.span.heard >= after {
                first = first.min(act.span.called);
            }
        }
        if self.rules(queue).max_attempts.is_some() {
            for take in life.into_iter().flat_map(|life| &life.takes).map(|at| &self.takes[*at]) {
                if take.span.heard >= after {
                    first = first.min(self.lease_end(take));
                }
            }
        }
        first
    }

    /// A put whose task is this one, told or by what it became.
    pub(crate) fn put_of(&self, task: i64) -> Option<&PutTry> {
        let life = self.lives.get(&task)?;
        let puts = life.puts.iter().map(|put| &self.puts[*put]);
        puts.clone().find(|put| put.enqueued() == Some(task)).or_else(|| puts.clone().next())
    }

    /// The lines about a task, first and last, for a story.
    pub(crate) fn lines_of(&self, task: i64) -> Vec<usize> {
        let Some(life) = self.lives.get(&task) else { return Vec::new() };
        let mut lines: Vec<usize> = Vec::new();
        lines.extend(life.puts.iter().flat_map(|put| self.puts[*put].span.lines()));
        lines.extend(life.takes.iter().flat_map(|take| self.takes[*take].span.lines()));
        lines.extend(life.ends.iter().flat_map(|end| self.ends[*end].span.lines()));
        lines.extend(life.acts.iter().flat_map(|act| act.span.lines()));
        lines
    }

    /// Numbers that an operator deleted and nobody knows the payload of.
    pub(crate) fn nameless(&self) -> usize {
        let known: HashSet<i64> = self.seen.values().flatten().copied().collect();
        self.lives
            .iter()
            .filter(|(task, life)| {
                !known.contains(task)
                    && life.puts.is_empty()
                    && life.acts.iter().any(|act| act.may_be(&["cancel", "discard", "resolve"]))
            })
            .count()
            + self.blind_acts.iter().filter(|(_, act)| act.action != "retry").count() * 1_000
    }
}
