-- Schedules.

-- name: schedule_all
SELECT name, declared, payload, paused, paused_by, decided_until, last_fire, last_tasks, created_at FROM gristmill_schedule ORDER BY name;

-- name: schedule_by_name
SELECT name, declared, payload, paused, paused_by, decided_until, last_fire, last_tasks, created_at FROM gristmill_schedule WHERE name = ?1;

-- name: schedule_save
INSERT OR REPLACE INTO gristmill_schedule
    (name, declared, payload, paused, paused_by, decided_until, last_fire, last_tasks, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: schedule_remove
DELETE FROM gristmill_schedule WHERE name = ?1;
