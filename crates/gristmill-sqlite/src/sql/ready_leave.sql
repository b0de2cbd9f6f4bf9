DELETE FROM gristmill_ready
 WHERE queue = ?1 AND priority = ?2 AND run_at = ?3 AND id = ?4
RETURNING delayed;
