SELECT place, id FROM gristmill_task WHERE queue = ?1 AND key = ?2 AND place < 2;
