//! How attempts end, how leases go on, and what operators do.

use gristmill_core::{
    Became, Ending, ExtendAnswer, Extension, Operation, OperationAnswer, OperationReport, Outcome,
    Progress, Selection, SettleAnswer, Settlement, TaskProgress,
};
use serde_json::{Map, Value};

use super::{Read, Wire, fields, say, take};

choice!(Outcome {
    "done" = Done,
    "error" = Error(error),
    "timed_out" = TimedOut(after),
    "retry" = Retry { at, reason },
    "fail" = Fail(error),
    "release" = Release { at, started },
    "cancelled" = Cancelled,
});
record!(Settlement { id, token, outcome, follow_ups, result });
choice!(Became {
    "done" = Done,
    "pending" = Pending { run_at },
    "failed" = Failed,
    "cancelled" = Cancelled,
});
choice!(SettleAnswer {
    "recorded" = Recorded { became, follow_ups },
    "already_recorded" = AlreadyRecorded,
    "gone" = Gone,
    "lease_lost" = LeaseLost,
});

record!(TaskProgress { id, progress });

/// Without progress where there is no news, and from who does not know of it.
impl Wire for Extension {
    fn write(&self) -> Value {
        let Extension { token, lease, progress } = self;
        let mut said = Map::new();
        say(&mut said, "token", token);
        say(&mut said, "lease", lease);
        if !progress.is_empty() {
            say(&mut said, "progress", progress);
        }
        Value::Object(said)
    }

    fn read(value: Value) -> Read<Self> {
        let mut said = fields(value)?;
        let (token, lease) = (take(&mut said, "token")?, take(&mut said, "lease")?);
        let progress: Option<Vec<TaskProgress>> = take(&mut said, "progress")?;
        Ok(Extension { token, lease, progress: progress.unwrap_or_default() })
    }
}

/// What is too much of it is cut by who reads it too.
impl Wire for Progress {
    fn write(&self) -> Value {
        let mut said = Map::new();
        say(&mut said, "done", &self.done());
        say(&mut said, "total", &self.total());
        say(&mut said, "message", &self.message().to_owned());
        Value::Object(said)
    }

    fn read(value: Value) -> Read<Self> {
        let mut said = fields(value)?;
        let (done, total) = (take(&mut said, "done")?, take(&mut said, "total")?);
        let message: String = take(&mut said, "message")?;
        Ok(Progress::new(done, total, &message))
    }
}

choice!(ExtendAnswer {
    "extended" = Extended { cancelled, lost },
    "lease_lost" = LeaseLost,
});

choice!(Ending {
    "open" = Open { wanted },
    "done" = Done { value },
    "failed" = Failed { error },
    "cancelled" = Cancelled,
    "discarded" = Discarded,
    "not_known" = NotKnown,
} else _other => Ending::NotKnown);

choice!(Selection { "ids" = Ids(ids), "matching" = Matching { filter, after } });
record!(Operation { action, selection, limit, by, note, start });
choice!(OperationAnswer {
    "moved" = Moved,
    "cancel_requested" = CancelRequested,
    "duplicate_of" = DuplicateOf(id),
    "wrong_state" = WrongState(state),
    "held" = Held,
    "gone" = Gone,
});
record!(OperationReport { answers, next });
