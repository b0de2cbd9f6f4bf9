SELECT queue, level, run_at, id FROM gristmill.count_undue($1, $2, $3, $4, $5, $6)
