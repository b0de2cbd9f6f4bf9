SELECT run_at, source FROM gristmill_task WHERE id = ?1;
