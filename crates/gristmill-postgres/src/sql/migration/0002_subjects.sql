-- The tables of bound subjects: the application's rows that a queue's tasks are about
-- (function/subject.sql).

-- Where the subjects of a queue are. The table and its column are known by
-- their numbers, so that a queue follows when they are renamed, and no session's
-- search_path has a say. Names are for a database that was restored from a dump:
-- numbers are others there.
--   after  tasks up to this id stood before the binding: nobody asked for their
--          subject then, so the sweep leaves them alone
CREATE TABLE gristmill.bound (
    queue       integer  PRIMARY KEY,
    place       oid      NOT NULL,
    attnum      smallint NOT NULL,
    table_name  text     NOT NULL,
    column_name text     NOT NULL,
    after       bigint   NOT NULL
);

-- Keys of bound queues a task of which has failed, and how often: many failed ones
-- may stand per key, so no unique index of `failed` tells of them. The row is
-- written anew each time, so that an old picture meets it, and goes with the
-- subject.
CREATE TABLE gristmill.subject_failed (
    queue integer NOT NULL,
    key   text COLLATE "C" NOT NULL,
    times bigint  NOT NULL,
    PRIMARY KEY (key, queue)
) WITH (fillfactor = 70);

-- How far the sweep of subjects is. parts: 1 pending, 2 failed, 3 done tasks of a
-- queue, 4 the leases of all queues.
CREATE TABLE gristmill.subject_sweep (
    one      boolean     PRIMARY KEY DEFAULT true CHECK (one),
    queue    integer     NOT NULL DEFAULT 0,
    part     smallint    NOT NULL DEFAULT 3,
    priority smallint    NOT NULL DEFAULT -32768,
    at       timestamptz NOT NULL DEFAULT '-infinity',
    id       bigint      NOT NULL DEFAULT 0,
    token    uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);
INSERT INTO gristmill.subject_sweep DEFAULT VALUES;
