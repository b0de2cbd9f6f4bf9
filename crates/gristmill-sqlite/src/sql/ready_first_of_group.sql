SELECT run_at, id FROM gristmill_ready INDEXED BY gristmill_ready_group
 WHERE queue = ?1 AND grp = ?2 AND priority = ?3 AND run_at <= ?4
 ORDER BY run_at, id LIMIT 1;
