-- `place < 2` repeats the index's condition, which the planner does not conclude
-- from `place = 0`.
SELECT id, priority, run_at, source, grp FROM gristmill_task
 WHERE queue = ?1 AND key = ?2 AND place < 2 AND place = 0 AND blocked = 1;
