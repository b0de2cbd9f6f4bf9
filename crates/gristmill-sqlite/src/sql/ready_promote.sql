-- Counts a bounded batch of tasks that fell due as ready. The order of claims
-- does not ask for this.
UPDATE gristmill_ready SET delayed = 0
 WHERE (queue, priority, run_at, id) IN (
       SELECT queue, priority, run_at, id
         FROM gristmill_ready INDEXED BY gristmill_ready_delayed
        WHERE delayed = 1 AND run_at <= ?1 ORDER BY run_at LIMIT ?2)
RETURNING queue;
