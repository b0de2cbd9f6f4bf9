SELECT t.state, t.id, q.name, t.key, t.grp, t.source, t.priority, t.run_at, t.created_at,
       t.blocked, t.unique_active, t.attempts, t.claims, t.expiries, t.encoding, t.prev_run_at,
       t.claimed_at, t.error, t.history::text, t.note, t.note_by, t.failed_at, t.resolved_by,
       t.resolved_at, t.headers::text, t.payload, t.worker, t.until, t.slot, t.cancel_requested
  FROM gristmill.shown t JOIN gristmill.queue q ON q.number = t.queue
 WHERE t.id = $1
