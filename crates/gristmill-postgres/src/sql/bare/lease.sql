UPDATE gristmill_bare
   SET status = 1, token = $1, until = clock_timestamp() + interval '60 s',
       attempts = attempts + 1
 WHERE id = ANY (ARRAY(SELECT b.id FROM gristmill_bare b
                        WHERE b.queue = 1 AND b.status = 0 AND b.run_at <= now()
                        ORDER BY b.run_at, b.id LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING id, payload
