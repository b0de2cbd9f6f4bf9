-- Which tasks stand on a page: numbers only, which are then read one by one. What does
-- not fit is left out here already, so that looking past it costs next to nothing.

-- name: walk_end_oldest
-- Where a look at so many tasks ends.
SELECT id FROM gristmill_task WHERE id > :from ORDER BY id LIMIT 1 OFFSET :rows;

-- name: walk_end_newest
SELECT id FROM gristmill_task WHERE id < :from ORDER BY id DESC LIMIT 1 OFFSET :rows;

-- name: walk_oldest
SELECT id FROM gristmill_task
 WHERE id > :from AND id <= :end
   AND (:queue IS NULL OR queue = :queue) AND (:pending = 0 OR place < 2)
   AND (:blocked IS NULL OR blocked = :blocked)
   AND (:by IS NULL OR run_at <= :by) AND (:later IS NULL OR run_at > :later)
   AND (:claims IS NULL OR claims >= :claims)
   AND (:error IS NULL OR instr(error, :error) > 0)
 ORDER BY id LIMIT :limit;

-- name: walk_newest
SELECT id FROM gristmill_task
 WHERE id < :from AND id >= :end
   AND (:queue IS NULL OR queue = :queue) AND (:pending = 0 OR place < 2)
   AND (:blocked IS NULL OR blocked = :blocked)
   AND (:by IS NULL OR run_at <= :by) AND (:later IS NULL OR run_at > :later)
   AND (:claims IS NULL OR claims >= :claims)
   AND (:error IS NULL OR instr(error, :error) > 0)
 ORDER BY id DESC LIMIT :limit;

-- name: walk_looked
SELECT count(*) AS looked FROM gristmill_task WHERE id BETWEEN :first AND :last;

-- name: group_oldest
SELECT id FROM gristmill_task INDEXED BY gristmill_task_grp
 WHERE grp = :grp AND id > :from ORDER BY id LIMIT :limit;

-- name: group_newest
SELECT id FROM gristmill_task INDEXED BY gristmill_task_grp
 WHERE grp = :grp AND id < :from ORDER BY id DESC LIMIT :limit;

-- name: source_oldest
SELECT id FROM gristmill_task INDEXED BY gristmill_task_source
 WHERE source = :source AND id > :from ORDER BY id LIMIT :limit;

-- name: source_newest
SELECT id FROM gristmill_task INDEXED BY gristmill_task_source
 WHERE source = :source AND id < :from ORDER BY id DESC LIMIT :limit;

-- name: level_ids_oldest
-- The first of one level in a stretch of times. It reads that stretch of the level, of
-- which the kept counts have said that it is short enough. Ids mostly rise with times: read
-- in their direction, the first rows are the wanted ones and all others are only passed
-- by, where each would else take the place of another. LIMIT -1 keeps the two orders apart.
SELECT id FROM (
    SELECT id FROM gristmill_ready
     WHERE queue = :queue AND priority = :priority AND run_at > :later AND run_at <= :by
       AND id > :from
     ORDER BY run_at, id LIMIT -1)
 ORDER BY id LIMIT :limit;

-- name: level_ids_newest
SELECT id FROM (
    SELECT id FROM gristmill_ready
     WHERE queue = :queue AND priority = :priority AND run_at > :later AND run_at <= :by
       AND id < :from
     ORDER BY run_at DESC, id DESC LIMIT -1)
 ORDER BY id DESC LIMIT :limit;

-- name: blocked_ids
SELECT b.id FROM gristmill_blocked b CROSS JOIN gristmill_task t ON t.id = b.id
 WHERE b.id * :sign > :from AND (:queue IS NULL OR t.queue = :queue)
 ORDER BY b.id * :sign LIMIT :limit;

-- name: failed_ids
SELECT id FROM gristmill_failed
 WHERE queue = :queue AND id * :sign > :from ORDER BY id * :sign LIMIT :limit;

-- name: done_key_ids
SELECT id FROM gristmill_done WHERE queue = :queue AND key = :key;
