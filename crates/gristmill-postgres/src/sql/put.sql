-- Putting and importing: one call of a function each (function/put.sql, import.sql).

-- name: put
SELECT is_known, outcomes, ids, run_ats, sources, details, capacity, bind_table, bind_column
  FROM gristmill.put_many(
      p_queue => $1, p_payloads => $2, p_encodings => $3, p_keys => $4, p_groups => $5,
      p_sources => $6, p_priorities => $7, p_run_ats => $8, p_delays => $9, p_caller_ids => $10,
      p_headers => $11, p_atomic => $12, p_outside => true, p_own => $13, p_patience => $14,
      p_refused => $15, p_now => $16)

-- In the caller's transaction, on the store of this id or not at all. The queue depends
-- on the store's row, so that no plan calls the function without one.
-- name: put_in
SELECT is_known, outcomes, ids, run_ats, sources, details, capacity, bind_table, bind_column
  FROM gristmill.meta m
 CROSS JOIN LATERAL gristmill.put_many(
      p_queue => CASE WHEN m.store_id IS NOT NULL THEN $1 END, p_payloads => $2,
      p_encodings => $3, p_keys => $4, p_groups => $5, p_sources => $6, p_priorities => $7,
      p_run_ats => $8, p_delays => $9, p_caller_ids => $10, p_headers => $11, p_atomic => $12,
      p_outside => true, p_own => $13, p_patience => $14, p_refused => $15, p_now => $16)
 WHERE m.store_id::text = $17

-- name: import
SELECT outcome, id, detail, bind_table, bind_column
  FROM gristmill.import_many(
      p_queue => $1, p_marks => $2, p_failed => $3, p_facts => $4, p_payloads => $5, p_kept => $6,
      p_now => $7)
