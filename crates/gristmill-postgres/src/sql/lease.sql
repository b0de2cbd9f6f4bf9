-- What happens under a lease: claim, extend, settle, take back (function/claim.sql,
-- settle.sql, moves.sql).

-- name: claim
SELECT now, lease, paused, next_due, swept, id, payload, encoding, key, grp, source, priority,
       attempt, claims, created_at, run_at, prev_run_at, headers, expiries, concurrent, slot,
       failed, clean, held_back
  FROM gristmill.claim_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, true, $11, $12, $13, $14, $15, $16)

-- name: behind
SELECT level, run_at, id FROM gristmill.behind($1, $2, $3, $4, $5)

-- name: extend
SELECT extended, cancelled, lost FROM gristmill.extend_many($1, $2, $3)

-- name: settle
SELECT answers, became, run_ats, woken, follow_ups, follow_ids, follow_run_ats, follow_sources,
       follow_details, is_refused, follow_columns, freed
  FROM gristmill.settle_many($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                             $17, $18, $19, $20, $21, $22, $23, $24, $25)

-- name: reclaim
SELECT taken, failed FROM gristmill.expire(NULL, $1, $2, $3, coalesce($4, clock_timestamp()))

-- name: cut_leases
SELECT gristmill.cut_leases($1, $2)
