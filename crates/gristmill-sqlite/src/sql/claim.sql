-- Claiming: the front of the order, with what a worker needs of each task.

-- name: claim_front
-- The front of one level. The join reads as many rows as are claimed.
SELECT r.priority, r.run_at, r.id, r.delayed, t.key, t.place, t.attempts, t.claims, t.expiries,
       t.created_at, t.encoding, t.grp, t.source, t.headers, t.payload, t.prev_run_at, t.checksum
  FROM gristmill_ready r CROSS JOIN gristmill_task t ON t.id = r.id
 WHERE r.queue = ?1 AND r.priority = ?2 AND r.run_at <= ?3
 ORDER BY r.run_at, r.id LIMIT ?4;

-- name: claim_front_source
SELECT r.priority, r.run_at, r.id, r.delayed, t.key, t.place, t.attempts, t.claims, t.expiries,
       t.created_at, t.encoding, t.grp, t.source, t.headers, t.payload, t.prev_run_at, t.checksum
  FROM gristmill_ready r INDEXED BY gristmill_ready_source CROSS JOIN gristmill_task t ON t.id = r.id
 WHERE r.queue = ?1 AND r.priority = ?2 AND r.run_at <= ?3 AND r.source = ?5
 ORDER BY r.run_at, r.id LIMIT ?4;

-- name: claim_one
SELECT r.priority, r.run_at, r.id, r.delayed, t.key, t.place, t.attempts, t.claims, t.expiries,
       t.created_at, t.encoding, t.grp, t.source, t.headers, t.payload, t.prev_run_at, t.checksum
  FROM gristmill_ready r CROSS JOIN gristmill_task t ON t.id = r.id
 WHERE r.queue = ?1 AND r.priority = ?2 AND r.run_at = ?3 AND r.id = ?4;

-- name: claim_take_flight
UPDATE gristmill_task SET place = 1 WHERE id = ?1;
