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
