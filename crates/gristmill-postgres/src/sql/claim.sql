SELECT now, lease, paused, next_due, swept, id, payload, encoding, key, grp, source, priority,
       attempt, claims, created_at, run_at, prev_run_at, headers, expiries, concurrent, slot,
       failed, clean, held_back
  FROM gristmill.claim_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, true, $11, $12, $13, $14, $15, $16)
