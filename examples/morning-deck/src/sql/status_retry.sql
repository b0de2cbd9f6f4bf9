-- What failed begins anew, as if it had never been tried.
UPDATE {table} SET status = ?1, status_at = ?2, error = NULL, attempts = 0
 WHERE status = 'ERROR' AND (?3 IS NULL OR id = ?3)
