-- Failures are counted until it ends well.
UPDATE {table}
   SET status = ?2, status_at = ?3, error = ?4,
       attempts = CASE ?2 WHEN 'ERROR' THEN attempts + 1 WHEN ?6 THEN 0 ELSE attempts END
 WHERE id = ?1 AND status IN (SELECT value FROM json_each(?5))
