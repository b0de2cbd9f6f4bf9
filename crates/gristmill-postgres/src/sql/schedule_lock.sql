SELECT name, declared, payload, paused, paused_by, decided_until, last_fire, last_tasks, created_at
  FROM gristmill.schedule WHERE name = $1 FOR UPDATE
