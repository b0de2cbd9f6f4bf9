-- Putting and importing: one call of a function each (function/put.sql, import.sql). Puts
-- that say nothing but payloads, and perhaps keys, are plain statements besides, for the
-- function around one INSERT costs more than the INSERT. They answer what the function
-- does, or nothing at all where the queue needs more than they know of: then it is asked.
--
-- Their arrays stand in a SELECT of their own, so that no plan knows how long they are. A
-- plan for three tasks looks cheaper than the one that is kept for any number, and would
-- be made anew for each put, which takes longer than the put.

-- name: put
SELECT is_known, outcomes, ids, run_ats, sources, details, capacity, bind_table, bind_column
  FROM gristmill.put_many(
      p_queue => $1, p_payloads => $2, p_encodings => $3, p_keys => $4, p_groups => $5,
      p_sources => $6, p_priorities => $7, p_run_ats => $8, p_delays => $9, p_caller_ids => $10,
      p_headers => $11, p_settings => $12, p_atomic => $13, p_outside => true, p_own => $14, p_patience => $15,
      p_refused => $16, p_now => $17)

-- In the caller's transaction, on the store of this id or not at all. The queue depends
-- on the store's row, so that no plan calls the function without one.
-- name: put_in
SELECT is_known, outcomes, ids, run_ats, sources, details, capacity, bind_table, bind_column
  FROM gristmill.meta m
 CROSS JOIN LATERAL gristmill.put_many(
      p_queue => CASE WHEN m.store_id IS NOT NULL THEN $1 END, p_payloads => $2,
      p_encodings => $3, p_keys => $4, p_groups => $5, p_sources => $6, p_priorities => $7,
      p_run_ats => $8, p_delays => $9, p_caller_ids => $10, p_headers => $11, p_settings => $12, p_atomic => $13,
      p_outside => true, p_own => $14, p_patience => $15, p_refused => $16, p_now => $17)
 WHERE m.store_id::text = $18

-- name: import
SELECT outcome, id, detail, bind_table, bind_column
  FROM gristmill.import_many(
      p_queue => $1, p_marks => $2, p_failed => $3, p_facts => $4, p_payloads => $5, p_kept => $6,
      p_checkpoints => $7, p_now => $8)

-- name: put_plain
-- Tasks without keys. Ids are taken in the order of the payloads.
WITH q AS MATERIALIZED (
    SELECT x.number, x.grouped AS slotted, x.unique_active,
           coalesce($5, clock_timestamp()) AS now,
           CASE WHEN x.relaxed THEN set_config('synchronous_commit', 'off', true) END
      FROM gristmill.queue x
     WHERE x.name = $1 AND x.bind_table IS NULL
       AND (x.capacity IS NULL
            OR x.capacity - gristmill.pending(x.number) >= cardinality($2::bytea[]))
), entered AS (
    INSERT INTO gristmill.task (id, queue, run_at, created_at, slotted, unique_active, encoding,
        payload)
    SELECT nextval('gristmill.task_id'), q.number, q.now, q.now, q.slotted, q.unique_active, $3,
           g.payload
      FROM q, unnest((SELECT $2::bytea[])) AS g (payload)
    RETURNING id
), counted AS (
    INSERT INTO gristmill.delta (at, queue, ready, put, refused)
    SELECT q.now, q.number, cardinality($2::bytea[]), cardinality($2::bytea[]), nullif($4, 0)
      FROM q
)
SELECT array_agg(e.id) AS ids FROM entered e

-- name: put_one
-- One task without a key: what one caller puts after the other, so that each node of the
-- plan is felt. Nothing is refused beside it.
WITH entered AS (
    INSERT INTO gristmill.task (id, queue, run_at, created_at, slotted, unique_active, encoding,
        payload)
    SELECT nextval('gristmill.task_id'), x.number, coalesce($4, now()), coalesce($4, now()),
           x.grouped, x.unique_active, $3, $2
      FROM gristmill.queue x
     WHERE x.name = $1 AND x.bind_table IS NULL
       AND (x.capacity IS NULL OR x.capacity > gristmill.pending(x.number))
       AND (NOT x.relaxed OR set_config('synchronous_commit', 'off', true) IS NOT NULL)
    RETURNING queue, created_at
)
INSERT INTO gristmill.delta (at, queue, ready, put)
SELECT e.created_at, e.queue, 1, 1 FROM entered e
RETURNING currval('gristmill.task_id') AS id

-- name: put_keyed
-- A few tasks, some with keys, none of which is said twice. Whoever has put an equal key
-- meanwhile makes it fail (task_waiting), and nothing of it stands.
--   standing  positions of duplicates; beside them what stands for each
WITH q AS MATERIALIZED (
    SELECT x.number, x.grouped AS slotted, coalesce($7, clock_timestamp()) AS now,
           CASE WHEN x.relaxed THEN set_config('synchronous_commit', 'off', true) END,
           set_config('lock_timeout', $6::integer::text, true)
      FROM gristmill.queue x
     WHERE x.name = $1 AND x.bind_table IS NULL AND x.on_duplicate = 'skip'
       AND NOT x.unique_active AND x.unique_for IS NULL
       AND (x.capacity IS NULL
            OR x.capacity - gristmill.pending(x.number) >= cardinality($2::bytea[]))
), looked AS MATERIALIZED (
    SELECT g.nth, g.key, g.payload, q.number, q.slotted, q.now,
           (SELECT s.id FROM gristmill.task s
             WHERE s.key = g.key AND s.queue = q.number AND NOT s.in_flight) AS stands
      FROM q, unnest((SELECT $2::bytea[]), (SELECT $3::text[]))
                  WITH ORDINALITY AS g (payload, key, nth)
), asked AS MATERIALIZED (
    SELECT l.*, CASE WHEN l.stands IS NULL THEN nextval('gristmill.task_id') END AS id
      FROM looked l
), entered AS (
    INSERT INTO gristmill.task (id, queue, run_at, created_at, blocked, slotted, encoding, key,
        payload)
    SELECT a.id, a.number, a.now, a.now,
           (SELECT f.id FROM gristmill.flight f
             WHERE f.key = a.key AND f.queue = a.number) IS NOT NULL,
           a.slotted, $4, a.key, a.payload
      FROM asked a
     WHERE a.stands IS NULL
     -- Two puts of the same keys wait for each other at the first one, instead of
     -- crosswise.
     ORDER BY a.key COLLATE "C"
    RETURNING blocked
), counted AS (
    INSERT INTO gristmill.delta (at, queue, ready, blocked, put, duplicate, refused)
    SELECT q.now, q.number, e.entered - e.blocked, nullif(e.blocked, 0), nullif(e.entered, 0),
           nullif(cardinality($2::bytea[]) - e.entered, 0), nullif($5, 0)
      FROM q, (SELECT count(*)::integer AS entered,
                      (count(*) FILTER (WHERE x.blocked))::integer AS blocked
                 FROM entered x) e
)
SELECT array_agg(coalesce(a.id, a.stands)) AS ids,
       array_agg(a.nth::integer) FILTER (WHERE a.stands IS NOT NULL) AS standing,
       array_agg((SELECT s.run_at FROM gristmill.task s WHERE s.id = a.stands))
           FILTER (WHERE a.stands IS NOT NULL) AS run_ats,
       array_agg((SELECT s.source::text FROM gristmill.task s WHERE s.id = a.stands))
           FILTER (WHERE a.stands IS NOT NULL) AS sources
  FROM asked a

-- name: put_new
-- The same of many: all are taken to be new, which saves a look for each. One that is not
-- makes it fail.
WITH q AS MATERIALIZED (
    SELECT x.number, x.grouped AS slotted, coalesce($7, clock_timestamp()) AS now,
           CASE WHEN x.relaxed THEN set_config('synchronous_commit', 'off', true) END,
           set_config('lock_timeout', $6::integer::text, true)
      FROM gristmill.queue x
     WHERE x.name = $1 AND x.bind_table IS NULL AND x.on_duplicate = 'skip'
       AND NOT x.unique_active AND x.unique_for IS NULL
       AND (x.capacity IS NULL
            OR x.capacity - gristmill.pending(x.number) >= cardinality($2::bytea[]))
), asked AS MATERIALIZED (
    SELECT nextval('gristmill.task_id') AS id, g.key, g.payload
      FROM q, unnest((SELECT $2::bytea[]), (SELECT $3::text[])) AS g (payload, key)
), entered AS (
    INSERT INTO gristmill.task (id, queue, run_at, created_at, blocked, slotted, encoding, key,
        payload)
    SELECT a.id, q.number, q.now, q.now,
           (SELECT f.id FROM gristmill.flight f
             WHERE f.key = a.key AND f.queue = q.number) IS NOT NULL,
           q.slotted, $4, a.key, a.payload
      FROM q, asked a
     ORDER BY a.key COLLATE "C"
    RETURNING blocked
), counted AS (
    INSERT INTO gristmill.delta (at, queue, ready, blocked, put, refused)
    SELECT q.now, q.number, e.entered - e.blocked, nullif(e.blocked, 0), e.entered,
           nullif($5, 0)
      FROM q, (SELECT count(*)::integer AS entered,
                      (count(*) FILTER (WHERE x.blocked))::integer AS blocked
                 FROM entered x) e
)
SELECT array_agg(a.id) AS ids FROM asked a
