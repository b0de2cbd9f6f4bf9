SELECT 1 FROM gristmill_ready INDEXED BY gristmill_ready_delayed
 WHERE delayed = 1 AND run_at <= ?1 LIMIT 1;
