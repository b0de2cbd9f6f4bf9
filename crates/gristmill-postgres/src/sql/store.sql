-- The store itself: its id, its clock, its wake-ups.

-- name: meta_get
SELECT store_id::text FROM gristmill.meta

-- name: now
SELECT coalesce($1, clock_timestamp()) AS now

-- name: notify
-- A notice may be lost, so nobody waits for the disk: sent alone it would be a
-- commit like any other, and a busy producer sends two hundred a second.
SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)

-- name: attend
-- Over the connection that listens: as long as it does, it stands in the list of
-- locks, for whoever looks there. Nobody waits for that lock.
SELECT pg_backend_pid() AS connection
  FROM pg_advisory_lock_shared('gristmill.document'::regclass::oid::integer, 0)

-- name: others_listen
-- Whether a connection of another process stands there. $1 is our own.
SELECT EXISTS (
    SELECT 1 FROM pg_locks l
     WHERE l.locktype = 'advisory' AND l.granted
       AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
       AND l.classid = 'gristmill.document'::regclass::oid AND l.objid = 0 AND l.objsubid = 2
       AND l.pid <> $1) AS listen
