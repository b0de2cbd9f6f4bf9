UPDATE gristmill_task SET blocked = 0 WHERE id = ?1;
