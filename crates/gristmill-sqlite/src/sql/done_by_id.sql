SELECT * FROM gristmill_shown_done WHERE id = ?1;
