SELECT run_at, id, coalesce(grp, '') FROM gristmill_ready INDEXED BY gristmill_ready_source
 WHERE queue = ?1 AND priority = ?2 AND run_at <= ?3 AND source = ?5
 ORDER BY run_at, id LIMIT ?4;
