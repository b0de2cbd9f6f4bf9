-- Leases: one row a claim.

-- name: lease_new
INSERT INTO gristmill_lease (token, queue, worker, claimed_at, until, length, grp, slot, open, ids)
VALUES (:token, :queue, :worker, :claimed_at, :until, :length, :grp, :slot, :open, :ids);

-- name: lease_by_token
SELECT number, queue, worker, claimed_at, until, slot, ids FROM gristmill_lease WHERE token = :token;

-- name: lease_all
SELECT number, queue, worker, claimed_at, until, slot, ids, progress FROM gristmill_lease;

-- name: lease_progress
SELECT progress FROM gristmill_lease WHERE number = :number;

-- name: lease_tell
UPDATE gristmill_lease SET progress = :progress WHERE number = :number;

-- name: lease_live
SELECT count(*) AS live FROM gristmill_lease WHERE queue = :queue AND grp = :grp AND until > :now;

-- name: lease_queue
SELECT queue FROM gristmill_lease WHERE token = :token;

-- name: lease_slots
SELECT grp, slot FROM gristmill_lease INDEXED BY gristmill_lease_slot WHERE queue = :queue AND slot IS NOT NULL;

-- name: lease_open
SELECT coalesce(sum(open), 0) AS open FROM gristmill_lease WHERE queue = :queue;

-- name: lease_ids
SELECT ids FROM gristmill_lease WHERE queue = :queue;

-- name: bucket_get
SELECT full_at FROM gristmill_bucket WHERE queue = :queue AND grp = :grp;

-- name: bucket_all
SELECT grp, full_at FROM gristmill_bucket WHERE queue = :queue;

-- name: bucket_set
INSERT INTO gristmill_bucket (queue, grp, full_at) VALUES (:queue, :grp, :full_at)
ON CONFLICT (queue, grp) DO UPDATE SET full_at = excluded.full_at;

-- name: bucket_clamp
-- No bucket takes longer to fill than from empty: a clock that was ahead said so.
UPDATE gristmill_bucket SET full_at = :latest WHERE queue = :queue AND full_at > :latest;

-- name: bucket_forget
DELETE FROM gristmill_bucket WHERE queue = :queue AND full_at <= :now;

-- name: lease_prolong
UPDATE gristmill_lease SET until = :until, length = :length WHERE number = :number;

-- name: lease_shrink
UPDATE gristmill_lease SET open = :open, ids = :ids WHERE number = :number;

-- name: lease_end
DELETE FROM gristmill_lease WHERE number = :number;

-- name: lease_expired
SELECT token, queue, length FROM gristmill_lease WHERE until <= :now ORDER BY until, token;

-- name: lease_expired_queue
SELECT token, queue, length FROM gristmill_lease WHERE queue = :queue AND until <= :now ORDER BY until, token;

-- name: lease_clamp
-- No lease lasts longer than its length: the clock that says so was ahead.
UPDATE gristmill_lease SET until = :now + length WHERE until > :now + length;
