UPDATE gristmill_task
   SET priority = ?2, run_at = ?3, encoding = ?4, headers = ?5, payload = ?6, checksum = ?7
 WHERE id = ?1;
