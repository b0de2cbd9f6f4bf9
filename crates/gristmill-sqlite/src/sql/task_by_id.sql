SELECT * FROM gristmill_shown WHERE id = ?1;
