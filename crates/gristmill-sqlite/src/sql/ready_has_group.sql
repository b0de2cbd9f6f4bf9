SELECT 1 FROM gristmill_ready INDEXED BY gristmill_ready_group WHERE queue = ?1 AND grp = ?2 LIMIT 1;
