SELECT s.* FROM gristmill_failed f CROSS JOIN gristmill_shown s ON s.id = f.id
 WHERE f.id > ?1 ORDER BY f.id LIMIT ?2;
