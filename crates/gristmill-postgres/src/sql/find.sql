-- Each place by its own index; failed ones many a key.
SELECT k.key, k.id, k.place, k.state
  FROM (SELECT t.key, t.id, 0 AS place, 'pending' AS state FROM gristmill.task t
         WHERE t.queue = $1 AND t.key = ANY ($2) AND NOT t.in_flight
        UNION ALL
        SELECT f.key, f.id, 1, CASE WHEN EXISTS (SELECT 1 FROM gristmill.task t WHERE t.id = f.id)
                                    THEN 'pending' ELSE 'processing' END
          FROM gristmill.flight f WHERE f.queue = $1 AND f.key = ANY ($2)
        UNION ALL
        SELECT t.key, t.id, 2, 'failed' FROM gristmill.failed t
         WHERE t.queue = $1 AND t.key = ANY ($2)) k
 ORDER BY k.key, k.id
