-- Putting and importing.

-- name: id_next
-- The number of the next task: never one that was given before, also when
-- somebody wrote rows by hand.
SELECT max((SELECT coalesce(max(value), 1) FROM gristmill_meta WHERE key = 'next_id'),
           (SELECT coalesce(max(id), 0) + 1 FROM gristmill_task),
           (SELECT coalesce(max(id), 0) + 1 FROM gristmill_done));

-- name: put_standing
SELECT run_at, source FROM gristmill_task WHERE id = ?1;

-- name: put_task
INSERT INTO gristmill_task
    (id, queue, key, blocked, unique_active, priority, run_at, created_at, encoding,
     grp, source, headers, payload, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14);

-- name: put_ready
INSERT INTO gristmill_ready (queue, priority, run_at, id, source, grp, delayed)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: put_replace
UPDATE gristmill_task
   SET priority = ?2, run_at = ?3, encoding = ?4, headers = ?5, payload = ?6, checksum = ?7
 WHERE id = ?1;

-- name: put_id_known
SELECT task, digest FROM gristmill_id WHERE queue = ?1 AND id = ?2 AND until > ?3;

-- name: put_id_remember
INSERT INTO gristmill_id (queue, id, task, digest, until) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (queue, id) DO UPDATE SET
       task = excluded.task, digest = excluded.digest, until = excluded.until;

-- name: key_ids
SELECT id FROM gristmill_task WHERE queue = ?1 AND key = ?2 AND place < 2
UNION ALL
SELECT id FROM gristmill_failed WHERE queue = ?1 AND key = ?2;

-- name: places
SELECT place, id FROM gristmill_task WHERE queue = ?1 AND key = ?2 AND place < 2;

-- name: import_task
INSERT INTO gristmill_task
    (id, queue, key, place, blocked, unique_active, priority, run_at, created_at, attempts, claims,
     expiries, encoding, grp, source, headers, payload, prev_run_at, claimed_at, failed_at, error,
     history, note, note_by, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
        ?21, ?22, ?23, ?24, ?25);

-- name: put_id_clamp
-- No caller's id is known for longer than its queue says: the clock that says so
-- was ahead.
UPDATE gristmill_id SET until = ?2 WHERE queue = ?1 AND until > ?2;
