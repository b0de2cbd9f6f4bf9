SELECT priority FROM gristmill_ready INDEXED BY gristmill_ready_source
 WHERE queue = ?1 AND source = ?3 AND priority > ?2 ORDER BY priority LIMIT 1;
