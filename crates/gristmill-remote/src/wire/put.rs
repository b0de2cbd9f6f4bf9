//! Putting, and what refuses a task.

use gristmill_core::{
    FollowUp, Import, ImportAnswer, ImportTask, NewTask, PutAnswer, PutReport, PutRequest, Refusal,
    Start, When,
};

choice!(Start { "now" = Now, "at" = At(at), "after" = After(after) });
choice!(When { "at" = At(at), "after" = After(after) });

record!(NewTask { payload, key, group, source, priority, start, id, headers, settings });
record!(PutRequest { queue, tasks, atomic });
record!(FollowUp { queue, task });
record!(PutReport { answers });

choice!(PutAnswer {
    "enqueued" = Enqueued { id },
    "duplicate" = Duplicate { id, run_at, source },
    "replaced" = Replaced { id },
    "refused" = Refused(why),
});

choice!(Refusal {
    "queue_full" = QueueFull { capacity },
    "store_full" = StoreFull { tasks, bytes },
    "payload_too_large" = PayloadTooLarge { bytes, limit },
    "does_not_fit" = DoesNotFit(why),
    "unknown_queue" = UnknownQueue { name, suggestion },
    "no_such_subject" = NoSuchSubject { table, column, key, spelling },
    "subject_table_gone" = SubjectTableGone { table },
    "id_reused" = IdReused { first },
    "twin" = Twin { of },
    "invalid" = Invalid(why),
    "undone" = Undone { because },
} else other => Refusal::Invalid(other.to_string()));

record!(Import { queue, tasks });
record!(ImportTask { mark, in_flight, task });
choice!(ImportAnswer {
    "imported" = Imported { id },
    "already" = Already { id },
    "duplicate" = Duplicate { id },
    "refused" = Refused(why),
});
