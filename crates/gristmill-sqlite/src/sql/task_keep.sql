-- A finished task moves to the kept ones; its row is deleted afterwards.
INSERT INTO gristmill_done
    (id, queue, key, unique_active, priority, run_at, created_at, attempts, claims, expiries,
     started_releases, encoding, grp, source, headers, payload, prev_run_at, claimed_at,
     settled_token, failed_at, error, history, note, note_by, resolved_by, resolved_at)
SELECT id, queue, key, unique_active, priority, run_at, created_at, attempts, claims, expiries,
       started_releases, encoding, grp, source, headers, payload, prev_run_at, claimed_at,
       settled_token, failed_at, error, history, note, note_by, resolved_by, resolved_at
  FROM gristmill_task WHERE id = ?1;
