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
