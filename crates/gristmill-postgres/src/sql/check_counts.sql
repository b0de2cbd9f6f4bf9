-- The kept counts of every queue beside its rows, counted: slow on purpose, and
-- in one snapshot, in which both must be equal.
SELECT q.name::text, t.queue IS NOT NULL AS is_kept,
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
