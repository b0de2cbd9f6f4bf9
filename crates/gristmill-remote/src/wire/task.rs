//! A task as it is shown, and pages of them.

use gristmill_core::{
    Attempt, Backoff, Headers, KeyStanding, LeaseView, ListRequest, Note, Order, Page,
    ProgressView, StandingPlace, Task, TaskFilter, TaskSettings,
};
use serde_json::{Map, Value};

use super::{Read, Wire, fields, say, take};

record!(Attempt { worker, claimed_at, ended_at, end, error });
record!(LeaseView { worker, until, slot, progress });
record!(ProgressView { progress, at });
record!(Note { text, by });
growing!(Task = Task::new { id, queue, payload, created_at } {
    key,
    group,
    source,
    priority,
    state,
    blocked,
    unique,
    attempts,
    claims,
    expiries,
    run_at,
    prev_run_at,
    claimed_at,
    lease,
    cancel_requested,
    failed_at,
    error,
    history,
    note,
    resolved_by,
    resolved_at,
    headers,
    settings,
    checkpoint,
    damaged,
});

record!(TaskFilter {
    queue,
    state,
    key,
    group,
    source,
    error_contains,
    claims_over,
    stood_at,
    blocked,
    runs_by,
    runs_after
});
choice!(Order { "oldest" = Oldest, "newest" = Newest });
record!(ListRequest { filter, order, after, limit });
record!(Page { tasks, next, looked });
choice!(StandingPlace { "waiting" = Waiting, "in_flight" = InFlight, "failed" = Failed });
record!(KeyStanding { key, id, place, state });

/// None are left out.
impl Wire for Headers {
    fn write(&self) -> Value {
        if self.is_empty() {
            return Value::Null;
        }
        let all = self.iter().map(|(name, text)| (name.clone(), Value::String(text.clone())));
        Value::Object(all.collect())
    }

    fn read(value: Value) -> Read<Self> {
        if value.is_null() {
            return Ok(Headers::new());
        }
        let each = fields(value)?.into_iter();
        each.map(|(name, text)| match String::read(text) {
            Ok(text) => Ok((name, text)),
            Err(fault) => Err(fault.within(&name)),
        })
        .collect()
    }

    fn absent() -> Option<Self> {
        Some(Headers::new())
    }
}

/// As they were said, also where no task can have them: the store is who refuses.
impl Wire for TaskSettings {
    fn write(&self) -> Value {
        if self.is_empty() {
            return Value::Null;
        }
        let mut said = Map::new();
        say(&mut said, "timeout", &self.timeout());
        // None at all, or one.
        say(&mut said, "max_attempts", &self.max_attempts().map(Vec::from_iter));
        say(&mut said, "backoff", &self.backoff());
        say(&mut said, "wanted", &self.is_wanted());
        Value::Object(said)
    }

    fn read(value: Value) -> Read<Self> {
        let mut own = TaskSettings::default();
        if value.is_null() {
            return Ok(own);
        }
        let mut said = fields(value)?;
        if let Some(timeout) = take(&mut said, "timeout")? {
            own.set_timeout(timeout);
        }
        if let Some(attempts) = take::<Option<Vec<u32>>>(&mut said, "max_attempts")? {
            own.set_max_attempts(attempts.first().copied());
        }
        if let Some(backoff) = take(&mut said, "backoff")? {
            own.set_backoff(backoff);
        }
        if take::<Option<bool>>(&mut said, "wanted")? == Some(true) {
            own.set_wanted();
        }
        Ok(own)
    }

    fn absent() -> Option<Self> {
        Some(TaskSettings::default())
    }
}

record!(Backoff { base, cap, jitter });
