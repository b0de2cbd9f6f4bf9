-- Claiming: the front of the order, with what a worker needs of each task.

-- name: claim_front
-- The front of one level. The join reads as many rows as are claimed.
SELECT r.priority, r.run_at, r.id, r.delayed, t.key, t.place, t.attempts, t.claims, t.expiries,
       t.created_at, t.encoding, t.grp, t.source, t.headers, t.settings, t.payload, t.prev_run_at, t.checksum,
       t.checkpoint
  FROM gristmill_ready r CROSS JOIN gristmill_task t ON t.id = r.id
 WHERE r.queue = :queue AND r.priority = :priority AND r.run_at <= :now
 ORDER BY r.run_at, r.id LIMIT :limit;

-- name: claim_front_source
SELECT r.priority, r.run_at, r.id, r.delayed, t.key, t.place, t.attempts, t.claims, t.expiries,
       t.created_at, t.encoding, t.grp, t.source, t.headers, t.settings, t.payload, t.prev_run_at, t.checksum,
       t.checkpoint
  FROM gristmill_ready r INDEXED BY gristmill_ready_source CROSS JOIN gristmill_task t ON t.id = r.id
 WHERE r.queue = :queue AND r.priority = :priority AND r.run_at <= :now AND r.source = :source
 ORDER BY r.run_at, r.id LIMIT :limit;

-- name: claim_one
SELECT r.priority, r.run_at, r.id, r.delayed, t.key, t.place, t.attempts, t.claims, t.expiries,
       t.created_at, t.encoding, t.grp, t.source, t.headers, t.settings, t.payload, t.prev_run_at, t.checksum,
       t.checkpoint
  FROM gristmill_ready r CROSS JOIN gristmill_task t ON t.id = r.id
 WHERE r.queue = :queue AND r.priority = :priority AND r.run_at = :run_at AND r.id = :id;

-- name: claim_take_flight
UPDATE gristmill_task SET place = 1 WHERE id = :id;
