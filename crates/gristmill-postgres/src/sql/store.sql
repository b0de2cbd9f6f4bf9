-- The store itself: its id, its clock, its wake-ups.

-- name: meta_get
SELECT store_id::text FROM gristmill.meta

-- name: now
SELECT coalesce($1, clock_timestamp()) AS now

-- name: notify
-- A notice may be lost, so nobody waits for the disk: sent alone it would be a
-- commit like any other, and a busy producer sends two hundred a second.
SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)
