INSERT INTO gristmill_task
    (id, queue, key, blocked, unique_active, priority, run_at, created_at, encoding,
     grp, source, headers, payload, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14);
