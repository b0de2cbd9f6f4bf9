-- The bare limit of the benchmark: a queue table as one writes it by hand.

-- name: schema
-- What a hand-written queue needs at least: the claim order and one waiting
-- task a key.
CREATE TABLE bare (
  id       INTEGER PRIMARY KEY,
  queue    INTEGER NOT NULL,
  status   INTEGER NOT NULL,
  run_at   INTEGER NOT NULL,
  key      TEXT,
  payload  BLOB NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  token    BLOB,
  until    INTEGER
);
CREATE UNIQUE INDEX bare_key ON bare (queue, key) WHERE key IS NOT NULL AND status = 0;
CREATE INDEX bare_claim ON bare (queue, status, run_at, id);
CREATE TABLE bare_lease (
  token BLOB PRIMARY KEY,
  until INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last  INTEGER NOT NULL
) WITHOUT ROWID;

-- name: insert
INSERT INTO bare (queue, status, run_at, key, payload) VALUES (1, 0, :run_at, :key, :payload)
ON CONFLICT DO NOTHING;

-- name: pick
-- From behind what was leased last: nothing is passed by twice.
SELECT id, payload FROM bare
WHERE queue = 1 AND status = 0 AND run_at > :after AND run_at <= :now
ORDER BY run_at, id LIMIT :limit;

-- name: lease
-- One row a batch: from where to where.
INSERT INTO bare_lease (token, until, first, last) VALUES (:token, :until, :first, :last);

-- name: delete
DELETE FROM bare WHERE id BETWEEN :first AND :last;

-- name: release
DELETE FROM bare_lease WHERE token = :token;
