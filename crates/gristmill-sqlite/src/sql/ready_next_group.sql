SELECT grp FROM gristmill_ready INDEXED BY gristmill_ready_group
 WHERE queue = ?1 AND grp > ?2 ORDER BY grp LIMIT 1;
