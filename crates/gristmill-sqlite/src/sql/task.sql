-- Tasks, wherever they stand, for programs and people to read.

-- name: task_by_id
SELECT * FROM gristmill_shown WHERE id = ?1;

-- name: task_payload
SELECT payload, checksum FROM gristmill_task WHERE id = ?1;

-- name: task_stands
SELECT 1 FROM gristmill_task WHERE id = ?1 AND place < 2;

-- name: task_save
UPDATE gristmill_task SET
    place = ?2, blocked = ?3, run_at = ?4, prev_run_at = ?5, attempts = ?6, claims = ?7,
    expiries = ?8, started_releases = ?9, cancel_requested = ?10, claimed_at = ?11,
    settled_token = ?12, failed_at = ?13, error = ?14, history = ?15, note = ?16, note_by = ?17,
    resolved_by = ?18, resolved_at = ?19
 WHERE id = ?1;

-- name: task_keep
-- A finished task moves to the kept ones; its row is deleted afterwards.
INSERT INTO gristmill_done
    (id, queue, key, unique_active, priority, run_at, created_at, attempts, claims, expiries,
     started_releases, encoding, grp, source, headers, payload, prev_run_at, claimed_at,
     settled_token, failed_at, error, history, note, note_by, resolved_by, resolved_at)
SELECT id, queue, key, unique_active, priority, run_at, created_at, attempts, claims, expiries,
       started_releases, encoding, grp, source, headers, payload, prev_run_at, claimed_at,
       settled_token, failed_at, error, history, note, note_by, resolved_by, resolved_at
  FROM gristmill_task WHERE id = ?1;

-- name: task_keys_run
SELECT key FROM gristmill_task WHERE id BETWEEN ?1 AND ?2;

-- name: task_delete
DELETE FROM gristmill_task WHERE id = ?1;

-- name: task_delete_run
DELETE FROM gristmill_task WHERE id BETWEEN ?1 AND ?2;

-- name: task_ask_cancel
UPDATE gristmill_task SET cancel_requested = 1, note = ?2, note_by = ?3 WHERE id = ?1;

-- name: task_cancel_asked
SELECT cancel_requested FROM gristmill_task WHERE id = ?1;

-- name: failed_add
INSERT INTO gristmill_failed (id, queue, key, failed_at) VALUES (?1, ?2, ?3, ?4);

-- name: failed_remove
DELETE FROM gristmill_failed WHERE id = ?1;

-- name: done_by_id
SELECT * FROM gristmill_shown_done WHERE id = ?1;

-- name: done_payload
SELECT payload FROM gristmill_done WHERE id = ?1;

-- name: list_oldest
SELECT * FROM gristmill_shown WHERE id > ?1 ORDER BY id LIMIT ?2;

-- name: list_newest
SELECT * FROM gristmill_shown WHERE id < ?1 ORDER BY id DESC LIMIT ?2;

-- name: list_failed_oldest
SELECT s.* FROM gristmill_failed f CROSS JOIN gristmill_shown s ON s.id = f.id
 WHERE f.id > ?1 ORDER BY f.id LIMIT ?2;

-- name: list_failed_newest
SELECT s.* FROM gristmill_failed f CROSS JOIN gristmill_shown s ON s.id = f.id
 WHERE f.id < ?1 ORDER BY f.id DESC LIMIT ?2;

-- name: list_failed_queue_oldest
SELECT s.* FROM gristmill_failed f CROSS JOIN gristmill_shown s ON s.id = f.id
 WHERE f.id > ?1 AND f.queue = ?3 ORDER BY f.id LIMIT ?2;

-- name: list_failed_queue_newest
SELECT s.* FROM gristmill_failed f CROSS JOIN gristmill_shown s ON s.id = f.id
 WHERE f.id < ?1 AND f.queue = ?3 ORDER BY f.id DESC LIMIT ?2;

-- name: list_done_oldest
SELECT * FROM gristmill_shown_done WHERE id > ?1 ORDER BY id LIMIT ?2;

-- name: list_done_newest
SELECT * FROM gristmill_shown_done WHERE id < ?1 ORDER BY id DESC LIMIT ?2;
