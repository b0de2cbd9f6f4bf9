-- `gristmill check`: every row, counted and compared with what is kept.

-- name: check_tasks
-- A page of tasks with what a reader may stumble over; payloads stay where they
-- are. A queue that is not there hides its tasks from every list.
SELECT t.id, t.queue AS number, q.name::text AS queue, t.encoding, t.history::text, t.headers::text,
       t.settings::text, t.progress::text,
       t.payload IS NULL OR t.run_at IS NULL OR t.created_at IS NULL OR t.attempts IS NULL
           OR t.claims IS NULL OR t.expiries IS NULL OR t.priority IS NULL
           OR t.unique_active IS NULL AS is_torn
  FROM gristmill.shown t LEFT JOIN gristmill.queue q ON q.number = t.queue
 WHERE t.id > $1
 ORDER BY t.id
 LIMIT $2

-- name: check_counts
-- The kept counts of every queue beside its rows, counted: slow on purpose, and
-- in one snapshot, in which both must be equal.
SELECT q.name::text AS queue, t.queue IS NOT NULL AS is_kept,
       ARRAY[t.ready + coalesce(d.ready, 0), t.delayed + coalesce(d.delayed, 0),
             t.blocked + coalesce(d.blocked, 0), t.processing + coalesce(d.processing, 0),
             t.failed_now + coalesce(d.failed_now, 0),
             t.done_kept + coalesce(d.done_kept, 0)]::bigint[] AS kept,
       ARRAY[coalesce(p.ready, 0), coalesce(p.delayed, 0), coalesce(p.blocked, 0),
             coalesce(l.processing, 0), coalesce(f.failed, 0), coalesce(k.done, 0)]::bigint[]
           AS counted
  FROM gristmill.queue q
  LEFT JOIN gristmill.total t ON t.queue = q.number
  LEFT JOIN (SELECT x.queue, sum(x.ready) AS ready, sum(x.delayed) AS delayed,
                    sum(x.blocked) AS blocked, sum(x.processing) AS processing,
                    sum(x.failed_now) AS failed_now, sum(x.done_kept) AS done_kept
               FROM gristmill.delta x GROUP BY x.queue) d ON d.queue = q.number
  LEFT JOIN (SELECT t.queue, count(*) FILTER (WHERE t.blocked) AS blocked,
                    count(*) FILTER (WHERE NOT t.blocked AND w.id IS NOT NULL) AS delayed,
                    count(*) FILTER (WHERE NOT t.blocked AND w.id IS NULL) AS ready
               FROM gristmill.task t
               LEFT JOIN gristmill.delayed w ON w.id = t.id AND w.run_at = t.run_at
              GROUP BY t.queue) p ON p.queue = q.number
  LEFT JOIN (SELECT l.queue, sum(cardinality(l.open)) AS processing
               FROM gristmill.lease l GROUP BY l.queue) l ON l.queue = q.number
  LEFT JOIN (SELECT f.queue, count(*) AS failed
               FROM gristmill.failed f GROUP BY f.queue) f ON f.queue = q.number
  LEFT JOIN (SELECT k.queue, count(*) AS done
               FROM gristmill.done k GROUP BY k.queue) k ON k.queue = q.number
 ORDER BY q.number

-- name: check_places
-- Tasks and places that do not fit each other: each with what is wrong.
WITH held AS MATERIALIZED (
    -- Who has a right to a key's in-flight place.
    SELECT t.queue, t.key, t.id FROM gristmill.task t WHERE t.in_flight AND t.key IS NOT NULL
    UNION ALL
    SELECT l.queue, t.key, t.id FROM gristmill.lease l, unnest(l.tasks) t
     WHERE t.id = ANY (l.open) AND t.key IS NOT NULL
), stands AS MATERIALIZED (
    SELECT t.id FROM gristmill.task t
    UNION ALL SELECT unnest(l.open) FROM gristmill.lease l
    UNION ALL SELECT f.id FROM gristmill.failed f
    UNION ALL SELECT k.id FROM gristmill.done k
)
SELECT s.id, format('it stands in %s places', count(*)) AS why
  FROM stands s GROUP BY s.id HAVING count(*) > 1
UNION ALL
SELECT min(h.id), format('%s tasks have its key ''%s'' in flight', count(*), h.key)
  FROM held h GROUP BY h.queue, h.key HAVING count(*) > 1
UNION ALL
SELECT h.id, format('it is in flight and does not hold the place of its key ''%s''', h.key)
  FROM held h
 WHERE NOT EXISTS (SELECT 1 FROM gristmill.flight f
                    WHERE f.queue = h.queue AND f.key = h.key AND f.id = h.id)
UNION ALL
SELECT f.id, format('it holds the in-flight place of the key ''%s'' and is not in flight', f.key)
  FROM gristmill.flight f
 WHERE NOT EXISTS (SELECT 1 FROM held h
                    WHERE h.queue = f.queue AND h.key = f.key AND h.id = f.id)
UNION ALL
SELECT t.id, format('it is blocked and nobody has its key ''%s'' in flight', t.key)
  FROM gristmill.task t
 WHERE t.blocked AND NOT EXISTS (SELECT 1 FROM gristmill.flight f
                                  WHERE f.queue = t.queue AND f.key = t.key)
UNION ALL
SELECT d.id, 'it is counted as delayed and is not pending'
  FROM gristmill.delayed d
 WHERE NOT EXISTS (SELECT 1 FROM gristmill.task t WHERE t.id = d.id AND t.run_at = d.run_at)
UNION ALL
SELECT o.id, 'a lease has it open and does not hold it'
  FROM gristmill.lease l, unnest(l.open) AS o (id)
 WHERE NOT EXISTS (SELECT 1 FROM unnest(l.tasks) t WHERE t.id = o.id)
UNION ALL
SELECT c.id, 'a checkpoint is kept of it and it does not stand, or never ran'
  FROM gristmill.checkpoint c
 WHERE NOT EXISTS (SELECT 1 FROM gristmill.shown s
                    WHERE s.id = c.id AND s.state <> 'done' AND s.claims > 0)
UNION ALL
SELECT e.id, 'what came of it is kept and it stands'
  FROM gristmill.ending e
 WHERE EXISTS (SELECT 1 FROM gristmill.shown s WHERE s.id = e.id AND s.state <> 'done')
 ORDER BY 1, 2
