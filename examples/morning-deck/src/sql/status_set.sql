UPDATE {table} SET status = ?2, status_at = ?3, error = ?4
 WHERE id = ?1 AND status IN (SELECT value FROM json_each(?5))
