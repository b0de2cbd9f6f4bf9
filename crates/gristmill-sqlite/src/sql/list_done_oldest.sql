SELECT * FROM gristmill_shown_done WHERE id > ?1 ORDER BY id LIMIT ?2;
