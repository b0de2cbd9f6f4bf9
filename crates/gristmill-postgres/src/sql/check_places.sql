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
 ORDER BY 1, 2
