-- Windows of queues that say unique_for.

-- name: window_of
SELECT task FROM gristmill_key_window WHERE queue = :queue AND key = :key AND until > :now;

-- name: window_open
-- One that a later put began goes on for longer, and stays.
INSERT INTO gristmill_key_window (queue, key, task, until) VALUES (:queue, :key, :task, :until)
    ON CONFLICT (queue, key) DO UPDATE SET task = excluded.task, until = excluded.until
     WHERE excluded.until >= gristmill_key_window.until;

-- name: window_end
DELETE FROM gristmill_key_window WHERE queue = :queue AND key = :key AND task = :task;

-- name: window_forget
DELETE FROM gristmill_key_window WHERE (queue, key) IN (
    SELECT queue, key FROM gristmill_key_window WHERE until <= :now LIMIT :limit);

-- name: window_clamp
-- None lasts longer than its queue says: the clock that says so was ahead.
UPDATE gristmill_key_window SET until = :longest WHERE queue = :queue AND until > :longest;
