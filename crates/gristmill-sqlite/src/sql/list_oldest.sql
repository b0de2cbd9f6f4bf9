SELECT * FROM gristmill_shown WHERE id > ?1 ORDER BY id LIMIT ?2;
