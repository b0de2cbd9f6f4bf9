-- The number of the next task: never one that was given before, also when
-- somebody wrote rows by hand.
SELECT max((SELECT coalesce(max(value), 1) FROM gristmill_meta WHERE key = 'next_id'),
           (SELECT coalesce(max(id), 0) + 1 FROM gristmill_task),
           (SELECT coalesce(max(id), 0) + 1 FROM gristmill_done));
