INSERT INTO gristmill.schedule (name, declared, payload, paused, paused_by, decided_until,
                                last_fire, last_tasks, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (name) DO UPDATE
   SET declared = excluded.declared, payload = excluded.payload, paused = excluded.paused,
       paused_by = excluded.paused_by, decided_until = excluded.decided_until,
       last_fire = excluded.last_fire, last_tasks = excluded.last_tasks
