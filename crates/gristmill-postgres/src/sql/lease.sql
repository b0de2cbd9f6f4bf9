-- What happens under a lease: claim, extend, settle, take back (function/claim.sql,
-- settle.sql, moves.sql).

-- name: claim
SELECT now, lease, paused, next_due, swept, id, payload, encoding, key, grp, source, priority,
       attempt, claims, created_at, run_at, prev_run_at, headers, settings, expiries, concurrent, slot,
       failed, clean, held_back, checkpoint
  FROM gristmill.claim_tasks(
      p_queue => $1, p_max => $2, p_lease => $3, p_worker => $4, p_source => $5, p_token => $6,
      p_levels => $7, p_run_ats => $8, p_ids => $9, p_sweep => $10, p_own => true, p_held => $11,
      p_bytes => $12, p_leases => $13, p_kept => $14, p_now => $15, p_clean => $16)

-- name: behind
SELECT level, run_at, id FROM gristmill.behind(
      p_queue => $1, p_levels => $2, p_run_ats => $3, p_ids => $4, p_now => $5)

-- name: extend
SELECT extended, cancelled, lost FROM gristmill.extend_many(
      p_tokens => $1, p_leases => $2, p_of => $3, p_ids => $4, p_dones => $5, p_totals => $6,
      p_messages => $7, p_now => $8)

-- name: settle
SELECT answers, became, run_ats, woken, follow_ups, follow_ids, follow_run_ats, follow_sources,
       follow_details, is_refused, follow_columns, freed
  FROM gristmill.settle_many(
      p_tokens => $1, p_ids => $2, p_outcomes => $3, p_errors => $4, p_ats => $5, p_delays => $6,
      p_started => $7, f_of => $8, f_queues => $9, f_payloads => $10, f_encodings => $11,
      f_keys => $12, f_groups => $13, f_sources => $14, f_priorities => $15, f_run_ats => $16,
      f_delays => $17, f_caller_ids => $18, f_headers => $19, f_settings => $20, p_own => $21, p_patience => $22,
      p_free => $23, p_kept => $24, p_now => $25, p_in_turn => $26, p_results => $27,
      p_result_encodings => $28)

-- In the caller's transaction, on the store of this id or not at all (see put_in).
-- name: settle_in
SELECT answers, became, run_ats, woken, follow_ups, follow_ids, follow_run_ats, follow_sources,
       follow_details, is_refused, follow_columns, freed
  FROM gristmill.meta m
 CROSS JOIN LATERAL gristmill.settle_many(
      p_tokens => CASE WHEN m.store_id IS NOT NULL THEN $1 END, p_ids => $2, p_outcomes => $3,
      p_errors => $4, p_ats => $5, p_delays => $6, p_started => $7, f_of => $8, f_queues => $9,
      f_payloads => $10, f_encodings => $11, f_keys => $12, f_groups => $13, f_sources => $14,
      f_priorities => $15, f_run_ats => $16, f_delays => $17, f_caller_ids => $18,
      f_headers => $19, f_settings => $20, p_own => $21, p_patience => $22, p_free => $23, p_kept => $24,
      p_now => $25, p_in_turn => $26, p_results => $27, p_result_encodings => $28)
 WHERE m.store_id::text = $29

-- name: checkpoint
SELECT gristmill.checkpoint_many(
      p_tokens => $1, p_ids => $2, p_states => $3, p_own => true) AS answers

-- name: reclaim
SELECT taken, failed FROM gristmill.expire(
      p_queue => NULL, p_leases => $1, p_held => $2, p_kept => $3,
      p_now => coalesce($4, clock_timestamp()))

-- name: cut_leases
SELECT gristmill.cut_leases(p_limit => $1, p_now => $2)
