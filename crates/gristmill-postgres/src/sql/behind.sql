SELECT level, run_at, id FROM gristmill.behind($1, $2, $3, $4, $5)
