-- The bare limit of the benchmark: a queue table as one writes it by hand, and what the
-- server says it cost.

-- name: schema
-- What a hand-written queue needs at least: the claim order and one waiting
-- task a key. Made anew for each round.
DROP TABLE IF EXISTS gristmill_bare;
CREATE TABLE gristmill_bare (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue    integer     NOT NULL DEFAULT 1,
    status   smallint    NOT NULL DEFAULT 0,
    run_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    key      text,
    payload  bytea       NOT NULL,
    attempts integer     NOT NULL DEFAULT 0,
    token    uuid,
    until    timestamptz
);
CREATE UNIQUE INDEX gristmill_bare_key ON gristmill_bare (queue, key)
    WHERE key IS NOT NULL AND status = 0;
CREATE INDEX gristmill_bare_claim ON gristmill_bare (queue, status, run_at, id);
-- What is being worked on: one row a batch, which holds it.
DROP TABLE IF EXISTS gristmill_bare_lease;
CREATE TABLE gristmill_bare_lease (
    token    uuid PRIMARY KEY,
    until    timestamptz NOT NULL,
    ids      bigint[]    NOT NULL,
    keys     text[]      NOT NULL,
    payloads bytea[]     NOT NULL
);
ALTER TABLE gristmill_bare_lease ALTER COLUMN ids SET STORAGE EXTERNAL,
    ALTER COLUMN keys SET STORAGE EXTERNAL, ALTER COLUMN payloads SET STORAGE EXTERNAL;

-- name: insert
INSERT INTO gristmill_bare (key, payload)
SELECT u.key, u.payload FROM unnest($1::text[], $2::bytea[]) AS u (key, payload)
ON CONFLICT DO NOTHING

-- name: insert_one
INSERT INTO gristmill_bare (key, payload) VALUES ($1, $2) ON CONFLICT DO NOTHING

-- name: copy
COPY gristmill_bare (key, payload) FROM STDIN (FORMAT binary)

-- name: lease
-- The rows move into one lease row. A lost lease is only a redelivery, so that its
-- commit waits for no disk.
WITH relaxed AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
), taken AS (
    DELETE FROM gristmill_bare
     WHERE ctid = ANY (ARRAY(SELECT b.ctid FROM gristmill_bare b
                              WHERE b.queue = 1 AND b.status = 0 AND b.run_at <= now()
                              ORDER BY b.run_at, b.id LIMIT $2 FOR UPDATE SKIP LOCKED))
    RETURNING id, key, payload
), kept AS (
    INSERT INTO gristmill_bare_lease (token, until, ids, keys, payloads)
    SELECT $1, clock_timestamp() + interval '60 s', array_agg(t.id), array_agg(t.key),
           array_agg(t.payload)
      FROM taken t HAVING count(*) > 0
)
SELECT t.id, t.payload FROM relaxed, taken t

-- name: delete
DELETE FROM gristmill_bare_lease WHERE token = $1

-- name: drop
DROP TABLE IF EXISTS gristmill_bare, gristmill_bare_lease;
DROP SCHEMA IF EXISTS {schema} CASCADE

-- name: wal
-- What was written ahead so far, flushed or not.
SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint

-- name: dead
-- Of a schema's tables, or without one of the bare tables: row versions that
-- updates and deletions made dead, how many of them still stand, and how often
-- vacuum came by. What a row keeps out of line dies with it, so that tables of
-- such pieces count too.
WITH measured AS (
    SELECT c.oid, c.reltoastrelid
      FROM pg_class c
     WHERE CASE WHEN $1::text IS NULL
                THEN c.oid IN (to_regclass('gristmill_bare'), to_regclass('gristmill_bare_lease'))
                ELSE c.relnamespace = to_regnamespace($1::text) END
       AND c.relkind = 'r'
)
SELECT coalesce(sum(s.n_tup_upd + s.n_tup_del), 0)::bigint,
       coalesce(sum(s.n_dead_tup), 0)::bigint,
       coalesce(sum(s.vacuum_count + s.autovacuum_count), 0)::bigint
  FROM pg_stat_all_tables s
 WHERE s.relid IN (SELECT m.oid FROM measured m UNION SELECT m.reltoastrelid FROM measured m)

-- name: commits
SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()

-- name: others
-- A connection's counts are certain to be told when it has ended.
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = $1 AND pid <> pg_backend_pid()
