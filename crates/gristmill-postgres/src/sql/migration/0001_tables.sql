-- The tables of the store. `gristmill` is the schema's default name; another
-- one is put in its place when the steps are run. A step runs once and is not
-- changed afterwards: what is to be otherwise comes in another one. Functions and
-- views are no steps (../function): they are made again when their text changes.
--
-- The trick of this schema: a lease is not an UPDATE of each task. A claim
-- deletes its tasks from `task` and writes ONE row into `lease` that holds all
-- of them; when they are done that one row is deleted. A task is in exactly
-- one of: task, an open place of one lease, failed, done.
--
-- Dead rows are what kills queues on PostgreSQL, so the churning tables have
-- storage settings of their own. The default autovacuum waits for a fifth of a
-- table to be dead: of a queue that once held ten million rows, that is never.
-- A fixed number keeps the dead few whatever the table's size, and
-- vacuum_cost_delay = 0 lets the vacuum keep up with the claims.

CREATE SEQUENCE gristmill.task_id;
-- The store itself: its id, which functions and views stand in it (a checksum of all
-- of them), and the version of the program that made those. Numbers of queues that no
-- contract numbers begin at 10000; the number is chosen by the declaring program,
-- under the lock of this row.
CREATE TABLE gristmill.meta (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    store_id    uuid      NOT NULL,
    definitions text      NOT NULL DEFAULT '',
    program     integer[] NOT NULL DEFAULT '{}'
);

-- A queue, what was said of it, and the settings in force as columns, which
-- the functions read. Spans have only microseconds, no days: a day of a lease
-- is 24 hours also when clocks are set back.
CREATE TABLE gristmill.queue (
    number         integer PRIMARY KEY,
    name           text COLLATE "C" NOT NULL UNIQUE,
    declared       text NOT NULL,
    overridden     text,
    paused         boolean NOT NULL DEFAULT false,
    paused_by      text,
    contract       text,
    created_at     timestamptz NOT NULL,
    lease          interval NOT NULL DEFAULT '60 seconds',
    max_attempts   integer  DEFAULT 5,
    -- Microseconds, which a statement over many tasks computes with.
    backoff_base   bigint   NOT NULL DEFAULT 2000000,
    backoff_cap    bigint   NOT NULL DEFAULT 3600000000,
    backoff_jitter boolean  NOT NULL DEFAULT true,
    id_window      interval NOT NULL DEFAULT '86400 seconds',
    keep_done      interval,
    keep_result    interval,
    keep_failed    interval,
    relaxed        boolean  NOT NULL DEFAULT false,
    durable_claims boolean  NOT NULL DEFAULT false,
    unique_active  boolean  NOT NULL DEFAULT false,
    on_duplicate   text     NOT NULL DEFAULT 'skip'
                   CHECK (on_duplicate IN ('skip', 'replace', 'postpone')),
    postpone_max   interval,
    unique_for     interval,
    capacity       bigint,
    count          boolean  NOT NULL DEFAULT false,
    slots          integer,
    concurrency    integer,
    concurrency_per_group boolean NOT NULL DEFAULT false,
    -- So many tasks in so many microseconds.
    rate_tasks     integer,
    rate_time      bigint,
    burst          integer,
    rate_per_group boolean  NOT NULL DEFAULT false,
    -- Between groups.
    fair           boolean  NOT NULL DEFAULT false,
    -- A claim may have to leave tasks that are due: claims take turns.
    limited        boolean  NOT NULL DEFAULT false,
    -- Claims look at groups: tasks have to be in the group index.
    grouped        boolean  NOT NULL DEFAULT false,
    -- The end of an attempt makes room for another task.
    frees          boolean  NOT NULL DEFAULT false,
    bind_table     text,
    bind_column    text
);

-- Pending tasks: ready, delayed and blocked. Rows are inserted and deleted;
-- only replacing, postponing and un-blocking update one.
--   blocked    its key is in flight: it stands outside every claim index
--   in_flight  it was claimed before: it holds its key's in-flight place
--   delayed    run_at was ahead when it entered: it may have a row in `delayed`
--   slotted    claims of its queue looked at groups when it entered: it is in the
--              group index
--   settings   what the put said in place of the queue's, as JSON in its words;
--              spans in microseconds
-- attempts, claims and expiries are those before the running claim.
-- The columns from failed_at on are filled in `failed` and `done` only, which
-- have this very shape, so that a task moves between them whole.
CREATE TABLE gristmill.task (
    id               bigint      NOT NULL,
    created_at       timestamptz NOT NULL,
    run_at           timestamptz NOT NULL,
    queue            integer     NOT NULL,
    attempts         integer     NOT NULL DEFAULT 0,
    claims           integer     NOT NULL DEFAULT 0,
    expiries         smallint    NOT NULL DEFAULT 0,
    started_releases smallint    NOT NULL DEFAULT 0,
    priority         smallint    NOT NULL DEFAULT 0,
    encoding         smallint    NOT NULL DEFAULT 0,
    blocked          boolean     NOT NULL DEFAULT false,
    in_flight        boolean     NOT NULL DEFAULT false,
    delayed          boolean     NOT NULL DEFAULT false,
    slotted          boolean     NOT NULL DEFAULT false,
    unique_active    boolean     NOT NULL DEFAULT false,
    key              text COLLATE "C",
    grp              text COLLATE "C",
    source           text COLLATE "C",
    headers          jsonb,
    settings         jsonb,
    payload          bytea       NOT NULL,
    prev_run_at      timestamptz,
    claimed_at       timestamptz,
    settled          uuid,
    error            text,
    history          jsonb,
    note             text,
    note_by          text,
    failed_at        timestamptz,
    resolved_by      text,
    resolved_at      timestamptz,
    PRIMARY KEY (id)
) WITH (
    -- No free room in pages: almost nothing is updated, and never in place.
    fillfactor = 100,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
    autovacuum_vacuum_cost_delay = 0
);
-- THE claim order. Delayed tasks stand in it behind what is due; blocked ones
-- do not stand in it.
CREATE INDEX task_pick ON gristmill.task (queue, priority, run_at, id) WHERE NOT blocked;
-- The waiting place of a key: one task, refused by the database itself.
-- Here and below a key stands before its queue: whatever the planner believes
-- of the table's size, a list of keys is then looked up one by one. Behind the
-- queue it may read the whole queue instead, as it does when the table was
-- empty at the last vacuum.
CREATE UNIQUE INDEX task_waiting ON gristmill.task (key, queue)
    WHERE key IS NOT NULL AND NOT in_flight;
CREATE INDEX task_source ON gristmill.task (queue, source, priority, run_at, id)
    WHERE source IS NOT NULL AND NOT blocked;
CREATE INDEX task_group ON gristmill.task (queue, (coalesce(grp, '')), priority, run_at, id)
    WHERE slotted AND NOT blocked;
-- The same of one source: a claim that asks for it does not pass the others by.
CREATE INDEX task_group_source
    ON gristmill.task (queue, source, (coalesce(grp, '')), priority, run_at, id)
    WHERE slotted AND source IS NOT NULL AND NOT blocked;
-- The groups of a priority, for claims that go round them.
CREATE INDEX task_round ON gristmill.task (queue, priority, (coalesce(grp, '')), run_at, id)
    WHERE slotted AND NOT blocked;
-- Exactly the blocked ones, for the sweep that looks for missed ones.
CREATE INDEX task_blocked ON gristmill.task (key, queue) WHERE blocked;

-- The in-flight place of a key. The row stays while the task is back for
-- another run, so that a return never meets uniqueness.
CREATE TABLE gristmill.flight (
    queue integer NOT NULL,
    key   text COLLATE "C" NOT NULL,
    id    bigint  NOT NULL,
    PRIMARY KEY (key, queue)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- A put in the caller's transaction that a standing task was the answer to. The
-- task may run before that transaction commits, and then nothing would stand
-- for what the caller changed. So the put leaves a marker, which nobody sees
-- before the commit and which holds nothing: a claim of the key takes the
-- markers it sees along (its run begins after them), and one that is left over
-- is put again by the sweep, in a transaction of its own.
--   in_flight  what stood for it was being processed (unique: active): the
--              settlement that comes after the commit is enough
-- Locking the standing task instead would keep it from every claim for as long
-- as the caller takes, and a caller whose host is gone takes hours.
CREATE TABLE gristmill.marker (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue     integer     NOT NULL,
    key       text COLLATE "C" NOT NULL,
    in_flight boolean     NOT NULL,
    priority  smallint    NOT NULL,
    encoding  smallint    NOT NULL,
    run_at    timestamptz NOT NULL,
    grp       text COLLATE "C",
    source    text COLLATE "C",
    headers   jsonb,
    settings  jsonb,
    payload   bytea       NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX marker_key ON gristmill.marker (key, queue);

-- Tasks that are counted as delayed, by the time they fall due. A task that
-- leaves and still has its row here was counted as delayed, else as ready.
CREATE TABLE gristmill.delayed (
    run_at timestamptz NOT NULL,
    id     bigint      NOT NULL,
    queue  integer     NOT NULL,
    PRIMARY KEY (run_at, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- A task in a lease, as it was before the claim. Not the row of `task`: no column
-- could be added to a table whose row stands in another one's. What a claim must
-- bring back is here, and what `task` gets besides is at its default after it.
CREATE TYPE gristmill.held AS (
    id               bigint,
    created_at       timestamptz,
    run_at           timestamptz,
    queue            integer,
    attempts         integer,
    claims           integer,
    expiries         smallint,
    started_releases smallint,
    priority         smallint,
    encoding         smallint,
    unique_active    boolean,
    key              text COLLATE "C",
    grp              text COLLATE "C",
    source           text COLLATE "C",
    headers          jsonb,
    settings         jsonb,
    payload          bytea,
    prev_run_at      timestamptz,
    claimed_at       timestamptz,
    settled          uuid,
    error            text,
    history          jsonb,
    note             text,
    note_by          text
);

-- One row a claim (on queues with count or slots a claim takes one task).
--   open        ids not settled yet, rising
--   ids, tasks  every task of the claim as it was before it, in its order
--   keyed, keys the ids that have a key, and their keys
--   cancelled   open ids an operator wants ended; lost: ids whose subject went
--   kept        one of its tasks may have a row in `checkpoint`; null: none has
--   groups      of ids, one by one, where the queue counts what runs by group
-- tasks are rows of `task`, so that table can be given a nullable column only, at its
-- end: PostgreSQL refuses to rewrite a table whose row type another one uses. A step
-- that adds one adds it to `task`, `failed` and `done` alike, which move whole, and
-- what reads it says what null stands for.
-- The arrays are kept apart and uncompressed (EXTERNAL): settling a part then
-- does not rewrite the payloads, and compressing the ids of a thousand tasks was
-- an eighth of what a claim and its settlement cost.
CREATE TABLE gristmill.lease (
    token      uuid        NOT NULL,
    claimed_at timestamptz NOT NULL,
    queue      integer     NOT NULL,
    slot       integer,
    grp        text COLLATE "C",
    worker     text        NOT NULL,
    open       bigint[]    NOT NULL,
    keyed      bigint[],
    keys       text[],
    cancelled  bigint[],
    lost       bigint[],
    kept       boolean,
    groups     text[],
    ids        bigint[]    NOT NULL,
    tasks      gristmill.held[] NOT NULL,
    PRIMARY KEY (token)
) WITH (
    -- Settling a part rewrites the row, in its page where there is room.
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 5000,
    toast.autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE gristmill.lease
    ALTER COLUMN open  SET STORAGE EXTERNAL, ALTER COLUMN ids  SET STORAGE EXTERNAL,
    ALTER COLUMN keyed SET STORAGE EXTERNAL, ALTER COLUMN keys SET STORAGE EXTERNAL,
    ALTER COLUMN tasks SET STORAGE EXTERNAL;
-- For who looks for the leases of some tasks.
CREATE INDEX lease_queue ON gristmill.lease (queue);
-- A slot is held by one lease of its group at a time, whoever claims.
CREATE UNIQUE INDEX lease_slot ON gristmill.lease (queue, grp, slot) WHERE slot IS NOT NULL;
CREATE INDEX lease_group ON gristmill.lease (queue, grp) WHERE grp IS NOT NULL;

-- Where claims are limited: whoever claims updates the row of what the limit is of, so
-- that one comes after the other, also one with an older snapshot, which fails. Of a rate
-- it also says when the bucket is full again (null: it is). '' is the queue's own, and
-- that of tasks without a group.
CREATE TABLE gristmill.bucket (
    queue   integer NOT NULL,
    grp     text COLLATE "C" NOT NULL,
    turns   bigint  NOT NULL DEFAULT 0,
    full_at timestamptz,
    PRIMARY KEY (queue, grp)
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX bucket_full ON gristmill.bucket (queue, full_at);

-- Whose turn it was last in a priority, where claims take turns between groups.
CREATE TABLE gristmill.turn (
    queue    integer  NOT NULL,
    priority smallint NOT NULL,
    grp      text COLLATE "C" NOT NULL,
    PRIMARY KEY (queue, priority)
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- Tokens of tasks that never started, given back: the next claim of the queue puts them
-- into their buckets, so that no settlement waits for a claim.
CREATE TABLE gristmill.refund (
    queue integer NOT NULL,
    grp   text COLLATE "C" NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX refund_queue ON gristmill.refund (queue);

-- When a lease ends, and how long it was made for. Apart from the lease, so that
-- a heartbeat does not touch the row that a settlement needs: a handler may
-- complete its task in a REPEATABLE READ transaction that began before the last
-- heartbeat. A row whose lease is gone says nothing, and goes at its time.
--   progress  how far its tasks are, where handlers say so:
--             {"ID": {"done", "total", "message", "at"}}
CREATE TABLE gristmill.deadline (
    token    uuid        NOT NULL PRIMARY KEY,
    until    timestamptz NOT NULL,
    lease    interval    NOT NULL,
    queue    integer     NOT NULL,
    progress jsonb
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
-- Without the token, or a look for one token could be a walk over this index.
CREATE INDEX deadline_until ON gristmill.deadline (queue, until);

-- What handlers kept for the next attempts of their tasks. Apart from the task, which
-- moves from table to table: a task that keeps nothing costs nothing more. Only one
-- that was claimed can have a row, so nobody looks for one of any other.
CREATE TABLE gristmill.checkpoint (
    id    bigint NOT NULL PRIMARY KEY,
    state bytea  NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_delay = 0
);

-- What came of tasks, as long as it is kept: for who waits ten minutes, and what a
-- handler returned as long as its queue says. Apart from the done tasks, of which most
-- queues keep none.
CREATE TABLE gristmill.ending (
    id       bigint      NOT NULL PRIMARY KEY,
    queue    integer     NOT NULL,
    ending   text COLLATE "C" NOT NULL,
    encoding smallint,
    value    bytea,
    error    text,
    until    timestamptz NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX ending_until ON gristmill.ending (until);

-- Standing tasks whose end somebody waits for; looked at again at `until`. No key on
-- purpose: two puts that want the same task's end never wait for each other.
CREATE TABLE gristmill.wanted (
    id    bigint      NOT NULL,
    queue integer     NOT NULL,
    until timestamptz NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX wanted_id ON gristmill.wanted (id);
CREATE INDEX wanted_until ON gristmill.wanted (until);

-- Settlements in a caller's transaction, carried out by a trigger as it commits:
-- until then they hold nothing. Only their own transaction ever sees a row.
CREATE TABLE gristmill.settling (
    token   uuid        NOT NULL,
    id      bigint      NOT NULL,
    outcome text        NOT NULL,
    error   text,
    at      timestamptz,
    started boolean     NOT NULL,
    free    integer     NOT NULL,
    kept    integer     NOT NULL,
    now     timestamptz,
    result  bytea,
    result_encoding smallint,
    PRIMARY KEY (id, token)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- How far a chore came that looks at everything in turns (function/watch.sql), and when
-- claims of SQL clients last did a share of them (function/maintain.sql).
CREATE TABLE gristmill.chore (
    name  text COLLATE "C" PRIMARY KEY,
    key   text COLLATE "C" NOT NULL,
    queue integer NOT NULL,
    at    timestamptz
) WITH (fillfactor = 50);

-- Failed tasks, and done ones that their queue keeps: in no claim index.
CREATE TABLE gristmill.failed (LIKE gristmill.task INCLUDING DEFAULTS, PRIMARY KEY (id));
CREATE INDEX failed_queue ON gristmill.failed (queue, id);
CREATE INDEX failed_key ON gristmill.failed (queue, key) WHERE key IS NOT NULL;
CREATE INDEX failed_at ON gristmill.failed (queue, failed_at);
CREATE TABLE gristmill.done (LIKE gristmill.task INCLUDING DEFAULTS, PRIMARY KEY (id));
CREATE INDEX done_queue ON gristmill.done (queue, resolved_at);
CREATE INDEX done_key ON gristmill.done (queue, key) WHERE key IS NOT NULL;

-- Callers' ids, remembered for a queue's id_window. task is null only inside
-- the transaction that puts.
CREATE TABLE gristmill.put_id (
    queue  integer     NOT NULL,
    id     text COLLATE "C" NOT NULL,
    task   bigint,
    digest bytea       NOT NULL,
    until  timestamptz NOT NULL,
    PRIMARY KEY (queue, id)
);
CREATE INDEX put_id_until ON gristmill.put_id (until);

-- Windows of queues that say unique_for: until when the put of a key keeps out others,
-- and which task it put. Without a row nothing is kept out.
CREATE TABLE gristmill.key_window (
    queue integer     NOT NULL,
    key   text COLLATE "C" NOT NULL,
    task  bigint      NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (queue, key)
) WITH (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX key_window_until ON gristmill.key_window (until);

-- Kept counts. What happens is appended to `delta` in the same transaction and
-- folded into `total` later: no put, claim or settlement ever updates a row
-- that another one needs. So true numbers are total plus the sum of delta.
CREATE TABLE gristmill.total (
    queue            integer PRIMARY KEY,
    ready            bigint NOT NULL DEFAULT 0,
    delayed          bigint NOT NULL DEFAULT 0,
    blocked          bigint NOT NULL DEFAULT 0,
    processing       bigint NOT NULL DEFAULT 0,
    failed_now       bigint NOT NULL DEFAULT 0,
    done_kept        bigint NOT NULL DEFAULT 0,
    put              bigint NOT NULL DEFAULT 0,
    duplicate        bigint NOT NULL DEFAULT 0,
    replaced         bigint NOT NULL DEFAULT 0,
    refused          bigint NOT NULL DEFAULT 0,
    claimed          bigint NOT NULL DEFAULT 0,
    done             bigint NOT NULL DEFAULT 0,
    retried          bigint NOT NULL DEFAULT 0,
    failed           bigint NOT NULL DEFAULT 0,
    released         bigint NOT NULL DEFAULT 0,
    expired          bigint NOT NULL DEFAULT 0,
    lease_lost       bigint NOT NULL DEFAULT 0,
    cancelled        bigint NOT NULL DEFAULT 0,
    discarded        bigint NOT NULL DEFAULT 0,
    resolved         bigint NOT NULL DEFAULT 0,
    operator_retried bigint NOT NULL DEFAULT 0,
    subject_gone     bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
-- No index, and null for nothing: a row is some fifty bytes.
CREATE TABLE gristmill.delta (
    at               timestamptz NOT NULL,
    queue            integer     NOT NULL,
    ready            integer,
    delayed          integer,
    blocked          integer,
    processing       integer,
    failed_now       integer,
    done_kept        integer,
    put              integer,
    duplicate        integer,
    replaced         integer,
    refused          integer,
    claimed          integer,
    done             integer,
    retried          integer,
    failed           integer,
    released         integer,
    expired          integer,
    lease_lost       integer,
    cancelled        integer,
    discarded        integer,
    resolved         integer,
    operator_retried integer,
    subject_gone     integer
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE TABLE gristmill.minute (
    queue  integer     NOT NULL,
    at     timestamptz NOT NULL,
    put    bigint      NOT NULL,
    done   bigint      NOT NULL,
    failed bigint      NOT NULL,
    PRIMARY KEY (queue, at)
) WITH (fillfactor = 50);

-- Fires up to decided_until are decided; later ones are not.
CREATE TABLE gristmill.schedule (
    name          text COLLATE "C" PRIMARY KEY,
    declared      text        NOT NULL,
    payload       bytea,
    paused        boolean     NOT NULL DEFAULT false,
    paused_by     text,
    decided_until timestamptz NOT NULL,
    last_fire     timestamptz,
    last_tasks    bigint[]    NOT NULL,
    created_at    timestamptz NOT NULL
);

-- Small records beside tasks, each changed as a whole by who knows its version: who leads,
-- who works, operations under way. keep is after how many microseconds without a change it
-- is forgotten.
CREATE TABLE gristmill.document (
    kind       text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    version    bigint      NOT NULL,
    body       text        NOT NULL,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    keep       bigint,
    PRIMARY KEY (kind, name)
);
-- A sweep looks at those alone. No instant in it: a report changes no index.
CREATE INDEX document_kept ON gristmill.document (kind) WHERE keep IS NOT NULL;

-- What became of one task of a put. outcome: 0 enqueued, 1 duplicate,
-- 2 replaced, 3 refused (detail says why).
CREATE TYPE gristmill.put_answer AS (
    outcome smallint,
    id      bigint,
    run_at  timestamptz,
    source  text,
    detail  text
);
