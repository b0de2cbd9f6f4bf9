-- Counts a bounded batch of one level's tasks that are not due any more as
-- delayed: the clock went back.
UPDATE gristmill_ready SET delayed = 1
 WHERE queue = ?1 AND priority = ?2 AND (run_at, id) IN (
       SELECT run_at, id FROM gristmill_ready
        WHERE queue = ?1 AND priority = ?2 AND run_at > ?3 AND delayed = 0
        ORDER BY run_at LIMIT ?4)
