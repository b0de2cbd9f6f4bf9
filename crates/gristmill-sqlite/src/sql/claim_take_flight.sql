UPDATE gristmill_task SET place = 1 WHERE id = ?1;
