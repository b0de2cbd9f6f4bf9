SELECT 1 FROM gristmill_task WHERE id = ?1 AND place < 2;
