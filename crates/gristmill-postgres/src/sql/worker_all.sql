SELECT report, since, seen, clock_timestamp() FROM gristmill.worker ORDER BY id
