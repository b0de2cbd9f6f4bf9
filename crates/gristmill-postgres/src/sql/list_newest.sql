-- A page by id: the first rows of each place, then of all of them.
SELECT t.state, t.id, q.name, t.key, t.grp, t.source, t.priority, t.run_at, t.created_at,
       t.blocked, t.unique_active, t.attempts, t.claims, t.expiries, t.encoding, t.prev_run_at,
       t.claimed_at, t.error, t.history::text, t.note, t.note_by, t.failed_at, t.resolved_by,
       t.resolved_at, t.headers::text, t.payload, t.worker, t.until, t.slot, t.cancel_requested
  FROM gristmill.shown t JOIN gristmill.queue q ON q.number = t.queue
 WHERE t.id < $1
   AND CASE WHEN $3 IS NULL THEN t.state = ANY ($10) ELSE t.state = $3 AND t.state = ANY ($10) END
   AND ($4 IS NULL OR t.queue = $4) AND ($5 IS NULL OR t.key = $5)
   AND ($6 IS NULL OR t.grp = $6) AND ($7 IS NULL OR t.source = $7)
   AND ($8 IS NULL OR position($8 IN t.error) > 0) AND ($9 IS NULL OR t.claims > $9)
 ORDER BY t.id DESC
 LIMIT $2
