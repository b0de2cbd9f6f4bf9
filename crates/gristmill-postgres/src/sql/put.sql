-- Putting and importing: one call of a function each (function/put.sql, import.sql).

-- name: put
SELECT is_known, outcomes, ids, run_ats, sources, details, capacity, bind_table, bind_column
  FROM gristmill.put_many($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, true, $13, $14, $15,
                          $16)

-- name: import
SELECT outcome, id, detail, bind_table, bind_column
  FROM gristmill.import_many($1, $2, $3, $4, $5, $6, $7)
