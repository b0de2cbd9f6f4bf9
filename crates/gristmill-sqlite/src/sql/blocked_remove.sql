DELETE FROM gristmill_blocked WHERE id = ?1;
