-- Blocked tasks behind which nothing stands any more, a bounded stretch of
-- the blocked ones at a time.
SELECT b.id, t.queue, t.key,
       EXISTS (SELECT 1 FROM gristmill_task f
                WHERE f.queue = t.queue AND f.key = t.key AND f.place < 2 AND f.place = 1)
  FROM gristmill_blocked b CROSS JOIN gristmill_task t ON t.id = b.id
 WHERE b.id > ?1 ORDER BY b.id LIMIT ?2;
