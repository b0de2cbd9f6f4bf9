SELECT * FROM gristmill_shown_done WHERE id < ?1 ORDER BY id DESC LIMIT ?2;
