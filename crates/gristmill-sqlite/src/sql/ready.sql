-- The claim order: who stands in it, who enters and who leaves.

-- name: ready_level
-- The next level of priority: one look a level, however many tasks stand in it.
SELECT priority FROM gristmill_ready WHERE queue = :queue AND priority > :after ORDER BY priority LIMIT 1;

-- name: ready_level_group
SELECT priority FROM gristmill_ready INDEXED BY gristmill_ready_group
 WHERE queue = :queue AND grp = :grp AND priority > :after ORDER BY priority LIMIT 1;

-- name: ready_level_source
SELECT priority FROM gristmill_ready INDEXED BY gristmill_ready_source
 WHERE queue = :queue AND source = :source AND priority > :after ORDER BY priority LIMIT 1;

-- name: ready_next_due
SELECT run_at FROM gristmill_ready
 WHERE queue = :queue AND priority = :priority AND run_at > :now ORDER BY run_at LIMIT 1;

-- name: ready_next_due_source
SELECT run_at FROM gristmill_ready INDEXED BY gristmill_ready_source
 WHERE queue = :queue AND priority = :priority AND run_at > :now AND source = :source ORDER BY run_at LIMIT 1;

-- name: ready_next_group
-- The next group that has tasks, in the order of names.
SELECT grp FROM gristmill_ready INDEXED BY gristmill_ready_group
 WHERE queue = :queue AND grp > :after ORDER BY grp LIMIT 1;

-- name: ready_next_open_group
-- The same, past the groups whose bucket is empty: one look a group, and nothing is said
-- of it in between. A stamp of a clock that was ahead is nothing to go by.
WITH RECURSIVE named (grp) AS (
    SELECT (SELECT r.grp FROM gristmill_ready r INDEXED BY gristmill_ready_group
             WHERE r.queue = :queue AND r.grp > :after ORDER BY r.grp LIMIT 1)
    UNION ALL
    SELECT (SELECT r.grp FROM gristmill_ready r INDEXED BY gristmill_ready_group
             WHERE r.queue = :queue AND r.grp > n.grp ORDER BY r.grp LIMIT 1)
      FROM named n
     WHERE EXISTS (SELECT 1 FROM gristmill_bucket b
                    WHERE b.queue = :queue AND b.grp = n.grp
                      AND b.full_at > :open AND b.full_at <= :latest)
)
SELECT n.grp FROM named n
 WHERE n.grp IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM gristmill_bucket b
                    WHERE b.queue = :queue AND b.grp = n.grp
                      AND b.full_at > :open AND b.full_at <= :latest);

-- name: ready_first_of_group
-- The first behind a place; of a whole group behind one that is before all.
SELECT run_at, id FROM gristmill_ready INDEXED BY gristmill_ready_group
 WHERE queue = :queue AND grp = :grp AND priority = :priority AND run_at <= :now
   AND (run_at, id) > (:after_run_at, :after_id)
 ORDER BY run_at, id LIMIT 1;

-- name: ready_first_of_group_source
SELECT run_at, id FROM gristmill_ready INDEXED BY gristmill_ready_group
 WHERE queue = :queue AND grp = :grp AND priority = :priority AND run_at <= :now
   AND (run_at, id) > (:after_run_at, :after_id) AND source = :source
 ORDER BY run_at, id LIMIT 1;

-- name: ready_first_in_level
-- The first due task of a group in one level behind a place.
SELECT run_at, id FROM gristmill_ready INDEXED BY gristmill_ready_group
 WHERE queue = :queue AND grp = :grp AND priority = :priority AND run_at <= :now
   AND (run_at, id) > (:after_run_at, :after_id)
   AND (:source IS NULL OR source = :source)
 ORDER BY run_at, id LIMIT 1;

-- name: ready_round
-- The next group that has tasks in a level, in the order of names.
SELECT grp FROM gristmill_ready INDEXED BY gristmill_ready_round
 WHERE queue = :queue AND priority = :priority AND grp > :after ORDER BY grp LIMIT 1;

-- name: ready_round_open
-- The same, past the groups whose bucket is empty; see ready_next_open_group.
WITH RECURSIVE named (grp) AS (
    SELECT (SELECT r.grp FROM gristmill_ready r INDEXED BY gristmill_ready_round
             WHERE r.queue = :queue AND r.priority = :priority AND r.grp > :after
             ORDER BY r.grp LIMIT 1)
    UNION ALL
    SELECT (SELECT r.grp FROM gristmill_ready r INDEXED BY gristmill_ready_round
             WHERE r.queue = :queue AND r.priority = :priority AND r.grp > n.grp
             ORDER BY r.grp LIMIT 1)
      FROM named n
     WHERE EXISTS (SELECT 1 FROM gristmill_bucket b
                    WHERE b.queue = :queue AND b.grp = n.grp
                      AND b.full_at > :open AND b.full_at <= :latest)
)
SELECT n.grp FROM named n
 WHERE n.grp IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM gristmill_bucket b
                    WHERE b.queue = :queue AND b.grp = n.grp
                      AND b.full_at > :open AND b.full_at <= :latest);

-- name: ready_round_first
SELECT grp FROM gristmill_ready INDEXED BY gristmill_ready_round
 WHERE queue = :queue AND priority = :priority AND grp IS NOT NULL ORDER BY grp LIMIT 1;

-- name: turn_get
SELECT grp FROM gristmill_turn WHERE queue = :queue AND priority = :priority;

-- name: turn_set
INSERT INTO gristmill_turn (queue, priority, grp) VALUES (:queue, :priority, :grp)
ON CONFLICT (queue, priority) DO UPDATE SET grp = excluded.grp;

-- name: ready_groups_in_front
SELECT run_at, id, coalesce(grp, '') AS grp FROM gristmill_ready
 WHERE queue = :queue AND priority = :priority AND run_at <= :now
 ORDER BY run_at, id LIMIT :limit;

-- name: ready_groups_in_front_source
SELECT run_at, id, coalesce(grp, '') AS grp FROM gristmill_ready INDEXED BY gristmill_ready_source
 WHERE queue = :queue AND priority = :priority AND run_at <= :now AND source = :source
 ORDER BY run_at, id LIMIT :limit;

-- name: ready_has_group
SELECT 1 FROM gristmill_ready INDEXED BY gristmill_ready_group WHERE queue = :queue AND grp = :grp LIMIT 1;

-- name: ready_due_any
SELECT 1 FROM gristmill_ready INDEXED BY gristmill_ready_delayed
 WHERE delayed = 1 AND run_at <= :now LIMIT 1;

-- name: ready_oldest
SELECT run_at FROM gristmill_ready WHERE queue = :queue AND priority = :priority ORDER BY run_at LIMIT 1;

-- name: ready_leave
DELETE FROM gristmill_ready
 WHERE queue = :queue AND priority = :priority AND run_at = :run_at AND id = :id
RETURNING delayed;

-- name: ready_leave_front
-- A claim takes the front of one level, so one range is all it deletes.
DELETE FROM gristmill_ready
 WHERE queue = :queue AND priority = :priority AND (run_at, id) >= (:first_run_at, :first_id) AND (run_at, id) <= (:last_run_at, :last_id);

-- name: ready_promote
-- Counts a bounded batch of tasks that fell due as ready. The order of claims
-- does not ask for this.
UPDATE gristmill_ready SET delayed = 0
 WHERE (queue, priority, run_at, id) IN (
       SELECT queue, priority, run_at, id
         FROM gristmill_ready INDEXED BY gristmill_ready_delayed
        WHERE delayed = 1 AND run_at <= :now ORDER BY run_at LIMIT :limit)
RETURNING queue;

-- name: ready_demote
-- Counts a bounded batch of one level's tasks that are not due any more as
-- delayed: the clock went back.
UPDATE gristmill_ready SET delayed = 1
 WHERE queue = :queue AND priority = :priority AND (run_at, id) IN (
       SELECT run_at, id FROM gristmill_ready
        WHERE queue = :queue AND priority = :priority AND run_at > :now AND delayed = 0
        ORDER BY run_at LIMIT :limit)

-- name: ready_regroup
-- Claims look at groups from now on: the queue's tasks must be found by them.
UPDATE gristmill_ready
   SET grp = coalesce((SELECT t.grp FROM gristmill_task t WHERE t.id = gristmill_ready.id), '')
 WHERE queue = :queue AND grp IS NULL;

-- name: blocked_add
INSERT INTO gristmill_blocked (id) VALUES (:id);

-- name: blocked_remove
DELETE FROM gristmill_blocked WHERE id = :id;

-- name: unblock
UPDATE gristmill_task SET blocked = 0 WHERE id = :id;

-- name: unblock_read
-- `place < 2` repeats the index's condition, which the planner does not conclude
-- from `place = 0`.
SELECT id, priority, run_at, source, grp FROM gristmill_task
 WHERE queue = :queue AND key = :key AND place < 2 AND place = 0 AND blocked = 1;

-- name: unblock_missed
-- Blocked tasks behind which nothing stands any more. It looks at every blocked
-- task, and so is asked by a reader, in nobody's way.
SELECT t.queue, t.key
  FROM gristmill_blocked b CROSS JOIN gristmill_task t ON t.id = b.id
 WHERE NOT EXISTS (SELECT 1 FROM gristmill_task f
                    WHERE f.queue = t.queue AND f.key = t.key AND f.place < 2 AND f.place = 1)
 LIMIT :limit;
