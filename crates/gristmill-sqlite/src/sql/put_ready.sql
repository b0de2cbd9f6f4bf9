INSERT INTO gristmill_ready (queue, priority, run_at, id, source, grp, delayed)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);
