-- Leases: one row a claim.

-- name: lease_new
INSERT INTO gristmill_lease (token, queue, worker, claimed_at, until, length, grp, slot, open, ids)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- name: lease_by_token
SELECT number, queue, worker, claimed_at, until, slot, ids FROM gristmill_lease WHERE token = ?1;

-- name: lease_all
SELECT number, queue, worker, claimed_at, until, slot, ids FROM gristmill_lease;

-- name: lease_live
SELECT count(*) FROM gristmill_lease WHERE queue = ?1 AND grp = ?2 AND until > ?3;

-- name: lease_queue
SELECT queue FROM gristmill_lease WHERE token = ?1;

-- name: lease_slots
SELECT grp, slot FROM gristmill_lease INDEXED BY gristmill_lease_slot WHERE queue = ?1 AND slot IS NOT NULL;

-- name: lease_prolong
UPDATE gristmill_lease SET until = ?2, length = ?3 WHERE number = ?1;

-- name: lease_shrink
UPDATE gristmill_lease SET open = ?2, ids = ?3 WHERE number = ?1;

-- name: lease_end
DELETE FROM gristmill_lease WHERE number = ?1;

-- name: lease_expired
SELECT token, queue, length FROM gristmill_lease WHERE until <= ?1 ORDER BY until, token;

-- name: lease_expired_queue
SELECT token, queue, length FROM gristmill_lease WHERE queue = ?2 AND until <= ?1 ORDER BY until, token;

-- name: lease_clamp
-- No lease lasts longer than its length: the clock that says so was ahead.
UPDATE gristmill_lease SET until = ?1 + length WHERE until > ?1 + length;
