INSERT INTO gristmill_task
    (id, queue, key, place, blocked, unique_active, priority, run_at, created_at, attempts, claims,
     expiries, encoding, grp, source, headers, payload, prev_run_at, claimed_at, failed_at, error,
     history, note, note_by, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
        ?21, ?22, ?23, ?24, ?25);
