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

-- name: insert
INSERT INTO bare (queue, status, run_at, key, payload) VALUES (1, 0, :run_at, :key, :payload)
ON CONFLICT DO NOTHING;

-- name: lease
UPDATE bare SET status = 1, token = :token, until = :until, attempts = attempts + 1
WHERE id IN (SELECT id FROM bare WHERE queue = 1 AND status = 0 AND run_at <= :now
             ORDER BY run_at, id LIMIT :limit)
RETURNING id, payload;

-- name: delete
DELETE FROM bare WHERE id = :id AND token = :token;
