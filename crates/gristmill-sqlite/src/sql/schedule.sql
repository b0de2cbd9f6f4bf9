-- Schedules.

-- name: schedule_all
SELECT name, declared, payload, paused, paused_by, decided_until, last_fire, last_tasks, created_at FROM gristmill_schedule ORDER BY name;

-- name: schedule_by_name
SELECT name, declared, payload, paused, paused_by, decided_until, last_fire, last_tasks, created_at FROM gristmill_schedule WHERE name = :name;

-- name: schedule_save
INSERT OR REPLACE INTO gristmill_schedule
    (name, declared, payload, paused, paused_by, decided_until, last_fire, last_tasks, created_at)
VALUES (:name, :declared, :payload, :paused, :paused_by, :decided_until, :last_fire, :last_tasks, :created_at);

-- name: schedule_remove
DELETE FROM gristmill_schedule WHERE name = :name;
