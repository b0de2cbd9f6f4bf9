-- The next level of priority: one look a level, however many tasks stand in it.
SELECT priority FROM gristmill_ready WHERE queue = ?1 AND priority > ?2 ORDER BY priority LIMIT 1;
