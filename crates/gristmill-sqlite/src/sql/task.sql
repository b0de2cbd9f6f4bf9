-- Tasks, wherever they stand, for programs and people to read.

-- name: task_by_id
SELECT * FROM gristmill_shown WHERE id = :id;

-- name: task_payload
SELECT payload, checksum, checkpoint FROM gristmill_task WHERE id = :id;

-- name: task_checkpoint
UPDATE gristmill_task SET checkpoint = :checkpoint WHERE id = :id;

-- name: task_stands
SELECT 1 FROM gristmill_task WHERE id = :id AND place < 2;

-- name: task_is_there
SELECT 1 FROM gristmill_task WHERE id = :id;

-- name: task_save
UPDATE gristmill_task SET
    place = :place, blocked = :blocked, run_at = :run_at, prev_run_at = :prev_run_at, attempts = :attempts, claims = :claims,
    expiries = :expiries, started_releases = :started_releases, cancel_requested = :cancel_requested, claimed_at = :claimed_at,
    settled_token = :settled_token, failed_at = :failed_at, error = :error, history = :history, note = :note, note_by = :note_by,
    resolved_by = :resolved_by, resolved_at = :resolved_at
 WHERE id = :id;

-- name: task_keep
-- A finished task moves to the kept ones; its row is deleted afterwards.
INSERT INTO gristmill_done
    (id, queue, key, unique_active, priority, run_at, created_at, attempts, claims, expiries,
     started_releases, encoding, grp, source, headers, settings, payload, prev_run_at, claimed_at,
     settled_token, failed_at, error, history, note, note_by, resolved_by, resolved_at)
SELECT id, queue, key, unique_active, priority, run_at, created_at, attempts, claims, expiries,
       started_releases, encoding, grp, source, headers, settings, payload, prev_run_at, claimed_at,
       settled_token, failed_at, error, history, note, note_by, resolved_by, resolved_at
  FROM gristmill_task WHERE id = :id;

-- name: task_keys_run
SELECT key FROM gristmill_task WHERE id BETWEEN :first AND :last;

-- name: task_group
SELECT coalesce(grp, '') AS grp FROM gristmill_task WHERE id = :id;

-- name: task_delete
DELETE FROM gristmill_task WHERE id = :id;

-- name: task_delete_run
DELETE FROM gristmill_task WHERE id BETWEEN :first AND :last;

-- name: task_ask_cancel
UPDATE gristmill_task SET cancel_requested = 1, note = :note, note_by = :note_by WHERE id = :id;

-- name: task_cancel_asked
SELECT cancel_requested FROM gristmill_task WHERE id = :id;

-- name: failed_add
INSERT INTO gristmill_failed (id, queue, key, failed_at) VALUES (:id, :queue, :key, :failed_at);

-- name: failed_remove
DELETE FROM gristmill_failed WHERE id = :id;

-- name: done_by_id
SELECT * FROM gristmill_shown_done WHERE id = :id;

-- name: done_payload
SELECT payload, NULL AS checksum, NULL AS checkpoint FROM gristmill_done WHERE id = :id;

-- name: list_oldest
SELECT * FROM gristmill_shown WHERE id > :from ORDER BY id LIMIT :limit;

-- name: list_failed_oldest
SELECT s.* FROM gristmill_failed f CROSS JOIN gristmill_shown s ON s.id = f.id
 WHERE f.id > :from ORDER BY f.id LIMIT :limit;

-- name: list_failed_newest
SELECT s.* FROM gristmill_failed f CROSS JOIN gristmill_shown s ON s.id = f.id
 WHERE f.id < :from ORDER BY f.id DESC LIMIT :limit;

-- name: list_failed_queue_oldest
SELECT s.* FROM gristmill_failed f CROSS JOIN gristmill_shown s ON s.id = f.id
 WHERE f.id > :from AND f.queue = :queue ORDER BY f.id LIMIT :limit;

-- name: list_failed_queue_newest
SELECT s.* FROM gristmill_failed f CROSS JOIN gristmill_shown s ON s.id = f.id
 WHERE f.id < :from AND f.queue = :queue ORDER BY f.id DESC LIMIT :limit;

-- name: list_done_oldest
SELECT * FROM gristmill_shown_done WHERE id > :from ORDER BY id LIMIT :limit;

-- name: list_done_newest
SELECT * FROM gristmill_shown_done WHERE id < :from ORDER BY id DESC LIMIT :limit;
