SELECT run_at, id, coalesce(grp, '') FROM gristmill_ready
 WHERE queue = ?1 AND priority = ?2 AND run_at <= ?3
 ORDER BY run_at, id LIMIT ?4;
