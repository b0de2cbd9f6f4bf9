DELETE FROM gristmill_failed WHERE id = ?1;
