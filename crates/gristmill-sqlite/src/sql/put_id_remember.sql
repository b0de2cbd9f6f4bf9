INSERT INTO gristmill_id (queue, id, task, digest, until) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (queue, id) DO UPDATE SET
       task = excluded.task, digest = excluded.digest, until = excluded.until;
