SELECT m.at, sum(m.put)::bigint, sum(m.done)::bigint, sum(m.failed)::bigint
  FROM (SELECT x.at, x.put, x.done, x.failed FROM gristmill.minute x WHERE x.queue = $1
        UNION ALL
        SELECT date_trunc('minute', d.at), coalesce(d.put, 0), coalesce(d.done, 0),
               coalesce(d.failed, 0)
          FROM gristmill.delta d
         WHERE d.queue = $1 AND (d.put > 0 OR d.done > 0 OR d.failed > 0)) m
 WHERE m.at >= date_trunc('minute', $2)
 GROUP BY m.at
 ORDER BY m.at
