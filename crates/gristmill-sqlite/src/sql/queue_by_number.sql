SELECT number, name, declared, overridden, paused, paused_by, contract, created_at FROM gristmill_queue WHERE number = ?1;
