//! Claims, and what is kept for the next attempt.

use gristmill_core::{Checkpoint, CheckpointAnswer, Claim, ClaimRequest, ClaimedTask};

record!(ClaimRequest { queue, max, lease, worker, source, token });
record!(Claim { token, queue, lease, tasks, next_due, held_back, paused, failed });
record!(ClaimedTask {
    id,
    payload,
    key,
    group,
    source,
    priority,
    attempt,
    claims,
    created_at,
    run_at,
    prev_run_at,
    headers,
    settings,
    checkpoint,
    concurrent,
    slot,
    alone,
});

record!(Checkpoint { id, token, state });
choice!(CheckpointAnswer {
    "kept" = Kept,
    "refused" = Refused(why),
    "lease_lost" = LeaseLost,
    "gone" = Gone,
});
