-- Blocked tasks behind which nothing stands any more. It looks at every blocked
-- task, and so is asked by a reader, in nobody's way.
SELECT t.queue, t.key
  FROM gristmill_blocked b CROSS JOIN gristmill_task t ON t.id = b.id
 WHERE NOT EXISTS (SELECT 1 FROM gristmill_task f
                    WHERE f.queue = t.queue AND f.key = t.key AND f.place < 2 AND f.place = 1)
 LIMIT ?1;
