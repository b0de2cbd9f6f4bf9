//! Workers' reports, leaders, and the manager's word.

use gristmill_core::{
    Assignment, HandlerStats, Leadership, ProcessorReport, Published, Share, WorkerReport,
    WorkerView,
};

record!(HandlerStats { processed, errors, retried, duration, last_error });
record!(ProcessorReport { queue, holding, cycle });
record!(WorkerReport {
    id,
    host,
    pid,
    version,
    queues,
    processors,
    handled,
    follows_term,
    stopping,
});
record!(WorkerView { report, since, silent_for });
record!(Leadership { leader, term, remaining, mine });
record!(Share { worker, queue, processors });
record!(Assignment { term, shares, published_at });
choice!(Published { "accepted" = Accepted, "stale_term" = StaleTerm { current } });
