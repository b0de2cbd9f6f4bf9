SELECT priority FROM gristmill_ready INDEXED BY gristmill_ready_group
 WHERE queue = ?1 AND grp = ?3 AND priority > ?2 ORDER BY priority LIMIT 1;
