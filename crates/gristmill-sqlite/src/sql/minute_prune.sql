DELETE FROM gristmill_minute WHERE queue = ?1 AND minute < ?2;
