-- `gristmill check`: every row, counted and compared with what is kept.

-- name: check_schema
-- What the store is made of. Triggers stand on the application's tables and are
-- looked at with the queue they belong to.
SELECT type, name, sql FROM sqlite_schema
 WHERE substr(name, 1, 10) = 'gristmill_' AND type IN ('table', 'index', 'view')
 ORDER BY type, name;

-- name: check_tasks
-- Tasks that stand where they must not, with the reason.
-- Every look at another row names its index or has a + before what must not be
-- one: with statistics from a time when the file was almost empty SQLite would
-- rather read the whole table for each task.
SELECT t.id, 'it is blocked, and stands in the claim order or holds no waiting place' AS why
  FROM gristmill_shown t WHERE t.blocked AND (t.in_order OR t.place <> 0)
UNION ALL
SELECT t.id, 'it is failed, and stands in the claim order'
  FROM gristmill_shown t WHERE t.place = 2 AND t.in_order
UNION ALL
SELECT t.id, 'its queue does not exist'
  FROM gristmill_task t WHERE t.queue NOT IN (SELECT number FROM gristmill_queue)
UNION ALL
SELECT t.id, 'it waits in the claim order while its key is in flight'
  FROM gristmill_shown t
 WHERE t.key IS NOT NULL AND t.place = 0 AND t.in_order
   AND EXISTS (SELECT 1 FROM gristmill_task f INDEXED BY gristmill_task_place
                WHERE f.queue = t.queue AND f.key = t.key AND f.place < 2 AND f.place = 1)
UNION ALL
SELECT t.id, 'it has a key and is processing, and does not hold the in-flight place'
  FROM gristmill_shown t
 WHERE t.key IS NOT NULL AND t.place = 0 AND NOT t.blocked AND NOT t.in_order
UNION ALL
SELECT r.id, 'it stands in the claim order and does not exist'
  FROM gristmill_ready r WHERE NOT EXISTS (SELECT 1 FROM gristmill_task t WHERE t.id = r.id)
UNION ALL
SELECT r.id, 'it stands in the claim order under another place, queue, source or group'
  FROM gristmill_ready r
 WHERE (SELECT r.queue <> t.queue OR r.priority <> t.priority OR r.run_at <> t.run_at
            OR r.source IS NOT t.source OR (r.grp IS NOT NULL AND r.grp <> coalesce(t.grp, ''))
          FROM gristmill_task t WHERE t.id = r.id)
UNION ALL
SELECT t.id, 'it is failed and not in the list of failed tasks'
  FROM gristmill_task t WHERE t.place = 2
   AND NOT EXISTS (SELECT 1 FROM gristmill_failed f
                    WHERE f.id = t.id AND +f.queue = t.queue AND +f.key IS t.key
                      AND +f.failed_at = t.failed_at)
UNION ALL
SELECT f.id, 'it is in the list of failed tasks and is not failed'
  FROM gristmill_failed f
 WHERE NOT EXISTS (SELECT 1 FROM gristmill_task t WHERE t.id = f.id AND +t.place = 2)
UNION ALL
SELECT t.id, 'it is blocked and not in the list of blocked tasks'
  FROM gristmill_task t WHERE t.blocked = 1 AND t.id NOT IN (SELECT id FROM gristmill_blocked)
UNION ALL
SELECT b.id, 'it is in the list of blocked tasks and is not blocked'
  FROM gristmill_blocked b
 WHERE NOT EXISTS (SELECT 1 FROM gristmill_task t WHERE t.id = b.id AND t.blocked = 1);

-- name: check_counts
-- What the kept counts should be, counted from the tables.
SELECT q.number,
       (SELECT count(*) FROM gristmill_ready r WHERE r.queue = q.number AND r.delayed = 0) AS ready,
       (SELECT count(*) FROM gristmill_ready r WHERE r.queue = q.number AND r.delayed = 1) AS delayed,
       (SELECT count(*) FROM gristmill_task t WHERE t.queue = q.number AND t.blocked = 1) AS blocked,
       (SELECT count(*) FROM gristmill_shown t
         WHERE t.queue = q.number AND t.place < 2 AND NOT t.blocked AND NOT t.in_order) AS processing,
       (SELECT count(*) FROM gristmill_task t WHERE t.queue = q.number AND t.place = 2) AS failed_now,
       (SELECT count(*) FROM gristmill_done d WHERE d.queue = q.number) AS done_kept
  FROM gristmill_queue q ORDER BY q.number;

-- name: check_leases
SELECT token, open, length(ids) AS bytes FROM gristmill_lease WHERE open * 8 <> length(ids) OR open = 0;

-- name: check_processing
SELECT id FROM gristmill_shown WHERE place < 2 AND NOT blocked AND NOT in_order;
