-- A claim takes the front of one level, so one range is all it deletes.
DELETE FROM gristmill_ready
 WHERE queue = ?1 AND priority = ?2 AND (run_at, id) >= (?3, ?4) AND (run_at, id) <= (?5, ?6);
