DELETE FROM gristmill_worker WHERE id = ?1;
