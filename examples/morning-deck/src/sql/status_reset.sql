-- Asks again whether each is stuck: a worker may have moved it since it was
-- listed.
UPDATE {table} SET status = ?4, status_at = ?5, error = NULL
 WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(?6))
   AND status IN (?1, ?2) AND status_at < ?3
