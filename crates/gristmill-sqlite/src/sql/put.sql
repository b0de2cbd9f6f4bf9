-- Putting and importing.

-- name: id_next
-- The number of the next task: never one that was given before, also when
-- somebody wrote rows by hand.
SELECT max((SELECT coalesce(max(value), 1) FROM gristmill_meta WHERE key = 'next_id'),
           (SELECT coalesce(max(id), 0) + 1 FROM gristmill_task),
           (SELECT coalesce(max(id), 0) + 1 FROM gristmill_done),
           (SELECT coalesce(max(id), 0) + 1 FROM gristmill_ending)) AS next;

-- name: put_standing
SELECT run_at, source FROM gristmill_task WHERE id = :id;

-- name: put_task
INSERT INTO gristmill_task
    (id, queue, key, blocked, unique_active, priority, run_at, created_at, encoding,
     grp, source, headers, settings, payload, checksum)
VALUES (:id, :queue, :key, :blocked, :unique_active, :priority, :run_at, :created_at, :encoding, :grp, :source, :headers, :settings, :payload, :checksum);

-- name: put_plain
-- The same of a task that says nothing but its payload.
INSERT INTO gristmill_task
    (id, queue, unique_active, priority, run_at, created_at, encoding, payload, checksum)
VALUES (:id, :queue, :unique_active, :priority, :run_at, :created_at, :encoding, :payload, :checksum);

-- name: put_eight
-- Eight of these, whose ids stand together (batch.rs). One that fails fails the whole
-- transaction: no pages are copied for taking back this statement alone.
INSERT OR FAIL INTO gristmill_task
    (id, queue, unique_active, priority, run_at, created_at, encoding, payload, checksum)
VALUES (:first, :queue, :unique_active, :priority, :run_at, :created_at, :encoding, :payload_1, :checksum_1),
       (:first + 1, :queue, :unique_active, :priority, :run_at, :created_at, :encoding, :payload_2, :checksum_2),
       (:first + 2, :queue, :unique_active, :priority, :run_at, :created_at, :encoding, :payload_3, :checksum_3),
       (:first + 3, :queue, :unique_active, :priority, :run_at, :created_at, :encoding, :payload_4, :checksum_4),
       (:first + 4, :queue, :unique_active, :priority, :run_at, :created_at, :encoding, :payload_5, :checksum_5),
       (:first + 5, :queue, :unique_active, :priority, :run_at, :created_at, :encoding, :payload_6, :checksum_6),
       (:first + 6, :queue, :unique_active, :priority, :run_at, :created_at, :encoding, :payload_7, :checksum_7),
       (:first + 7, :queue, :unique_active, :priority, :run_at, :created_at, :encoding, :payload_8, :checksum_8);

-- name: put_ready_many
-- Those of a put at once, whose ids stand together.
INSERT INTO gristmill_ready (queue, priority, run_at, id, source, grp, delayed)
SELECT t.queue, t.priority, t.run_at, t.id, t.source,
       CASE WHEN :slotted THEN coalesce(t.grp, '') END, t.run_at > :now
  FROM gristmill_task t
 WHERE t.id BETWEEN :first AND :last AND t.blocked = 0;

-- name: put_ready
INSERT INTO gristmill_ready (queue, priority, run_at, id, source, grp, delayed)
VALUES (:queue, :priority, :run_at, :id, :source, :grp, :delayed);

-- name: put_replace
UPDATE gristmill_task
   SET priority = :priority, run_at = :run_at, encoding = :encoding, headers = :headers, settings = :settings, payload = :payload, checksum = :checksum,
       checkpoint = NULL
 WHERE id = :id;

-- name: put_id_known
SELECT task, digest FROM gristmill_id WHERE queue = :queue AND id = :id AND until > :now;

-- name: put_id_remember
INSERT INTO gristmill_id (queue, id, task, digest, until) VALUES (:queue, :id, :task, :digest, :until)
    ON CONFLICT (queue, id) DO UPDATE SET
       task = excluded.task, digest = excluded.digest, until = excluded.until;

-- name: key_ids
SELECT id FROM gristmill_task WHERE queue = :queue AND key = :key AND place < 2
UNION ALL
SELECT id FROM gristmill_failed WHERE queue = :queue AND key = :key;

-- name: places
SELECT place, id FROM gristmill_task WHERE queue = :queue AND key = :key AND place < 2;

-- name: import_task
INSERT INTO gristmill_task
    (id, queue, key, place, blocked, unique_active, priority, run_at, created_at, attempts, claims,
     expiries, encoding, grp, source, headers, settings, payload, prev_run_at, claimed_at, failed_at, error,
     history, note, note_by, checksum, checkpoint)
VALUES (:id, :queue, :key, :place, :blocked, :unique_active, :priority, :run_at, :created_at, :attempts, :claims, :expiries, :encoding, :grp, :source, :headers, :settings, :payload, :prev_run_at, :claimed_at, :failed_at,
        :error, :history, :note, :note_by, :checksum, :checkpoint);

-- name: put_id_clamp
-- No caller's id is known for longer than its queue says: the clock that says so
-- was ahead.
UPDATE gristmill_id SET until = :longest WHERE queue = :queue AND until > :longest;
