-- Queues.

-- name: queue_all
SELECT number, name, declared, overridden, paused, paused_by, contract, created_at FROM gristmill_queue ORDER BY number;

-- name: queue_names
SELECT name FROM gristmill_queue;

-- name: queue_by_name
SELECT number, name, declared, overridden, paused, paused_by, contract, created_at FROM gristmill_queue WHERE name = :name;

-- name: queue_by_number
SELECT number, name, declared, overridden, paused, paused_by, contract, created_at FROM gristmill_queue WHERE number = :number;

-- name: queue_last_number
SELECT max(number) AS last FROM gristmill_queue;

-- name: queue_save
INSERT INTO gristmill_queue (number, name, declared, overridden, paused, paused_by, contract, created_at)
VALUES (:number, :name, :declared, :overridden, :paused, :paused_by, :contract, :created_at)
    ON CONFLICT (number) DO UPDATE SET
       declared = excluded.declared, overridden = excluded.overridden, paused = excluded.paused,
       paused_by = excluded.paused_by, contract = excluded.contract;
