-- A notice may be lost, so nobody waits for the disk: sent alone it would be a
-- commit like any other, and a busy producer sends two hundred a second.
SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)
