SELECT minute, put, done, failed FROM gristmill_minute WHERE queue = ?1 AND minute >= ?2 ORDER BY minute;
