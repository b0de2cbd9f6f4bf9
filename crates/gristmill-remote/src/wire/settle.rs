//! How attempts end, how leases go on, and what operators do.

use gristmill_core::{
    Became, Ending, ExtendAnswer, Extension, Operation, OperationAnswer, OperationReport, Outcome,
    Selection, SettleAnswer, Settlement,
};

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

record!(Extension { token, lease });
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
