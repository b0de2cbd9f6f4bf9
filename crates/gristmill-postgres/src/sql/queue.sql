-- Queues: what was declared, what is in force, what was counted.

-- name: queue_all
SELECT number, name, declared, overridden, paused, paused_by, contract, created_at
  FROM gristmill.queue ORDER BY number

-- name: queue_by_name
SELECT number, name, declared, overridden, paused, paused_by, contract, created_at
  FROM gristmill.queue WHERE name = $1

-- name: queue_lock
-- One declaration at a time: what it decides on does not change meanwhile.
SELECT one FROM gristmill.meta FOR UPDATE

-- name: queue_numbers
SELECT number, name FROM gristmill.queue ORDER BY number

-- name: queue_save
WITH saved AS (
    INSERT INTO gristmill.queue (number, name, declared, overridden, paused, paused_by, contract,
                                 created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (number) DO UPDATE
       SET declared = excluded.declared, overridden = excluded.overridden,
           paused = excluded.paused, paused_by = excluded.paused_by,
           contract = excluded.contract
    RETURNING number
)
INSERT INTO gristmill.total (queue) SELECT s.number FROM saved s ON CONFLICT DO NOTHING

-- name: queue_in_force
SELECT gristmill.put_in_force(p_number => $1, p_settings => $2::jsonb)

-- name: queue_standing
SELECT (s.ready + s.delayed + s.blocked + s.processing + s.failed_now)::bigint AS standing
  FROM gristmill.queue_stats() s WHERE s.number = $1

-- name: subject_bind
SELECT gristmill.bind_subject(p_queue => $1, p_table => $2, p_column => $3, p_again => $4)

-- name: stats
SELECT queue, number, paused, capacity, oldest_ready, now, ready, delayed, blocked, processing,
       failed_now, done_kept, put, duplicate, replaced, refused, claimed, done, retried, failed,
       released, expired, lease_lost, cancelled, discarded, resolved, operator_retried,
       subject_gone
  FROM gristmill.queue_stats(p_now => $1)

-- name: minutes
SELECT m.at, sum(m.put)::bigint AS put, sum(m.done)::bigint AS done, sum(m.failed)::bigint AS failed,
       (CASE WHEN sum(m.waits[1]) IS NOT NULL THEN
           ARRAY[sum(m.waits[1]), sum(m.waits[2]), sum(m.waits[3]), sum(m.waits[4]),
                 sum(m.waits[5]), sum(m.waits[6]), sum(m.waits[7])] END)::bigint[] AS waits
  FROM (SELECT x.at, x.put, x.done, x.failed, x.waits FROM gristmill.minute x WHERE x.queue = $1
        UNION ALL
        SELECT date_trunc('minute', d.at), coalesce(d.put, 0), coalesce(d.done, 0),
               coalesce(d.failed, 0), d.waits::bigint[]
          FROM gristmill.delta d
         WHERE d.queue = $1
           AND (d.put > 0 OR d.done > 0 OR d.failed > 0 OR d.waits IS NOT NULL)) m
 WHERE m.at >= date_trunc('minute', $2)
 GROUP BY m.at
 ORDER BY m.at
