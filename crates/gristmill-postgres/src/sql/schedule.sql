-- Schedules.

-- name: schedule_all
SELECT name, declared, payload, paused, paused_by, decided_until, last_fire, last_tasks, created_at
  FROM gristmill.schedule ORDER BY name

-- name: schedule_lock
SELECT name, declared, payload, paused, paused_by, decided_until, last_fire, last_tasks, created_at
  FROM gristmill.schedule WHERE name = $1 FOR UPDATE

-- name: schedule_save
INSERT INTO gristmill.schedule (name, declared, payload, paused, paused_by, decided_until,
                                last_fire, last_tasks, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (name) DO UPDATE
   SET declared = excluded.declared, payload = excluded.payload, paused = excluded.paused,
       paused_by = excluded.paused_by, decided_until = excluded.decided_until,
       last_fire = excluded.last_fire, last_tasks = excluded.last_tasks

-- name: schedule_remove
DELETE FROM gristmill.schedule WHERE name = $1 RETURNING name

-- name: schedule_standing
-- The first of these tasks that has not ended.
SELECT u.id
  FROM unnest($1) WITH ORDINALITY AS u (id, position)
 CROSS JOIN LATERAL gristmill.standing(u.id) s
 WHERE s.state IN ('pending', 'processing')
 ORDER BY u.position
 LIMIT 1
