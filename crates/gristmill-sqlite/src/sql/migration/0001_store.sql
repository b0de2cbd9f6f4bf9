-- The whole store. Every name begins with gristmill_, because the queue may
-- live in the application's own file.

-- Single values: store_id, next_id, settings (grows with every change of a
-- queue, so that other processes know when to read the queues again), clock
-- (what the last writer saw of the time, so that who starts knows of a jump).
CREATE TABLE gristmill_meta (
    key   TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

CREATE TABLE gristmill_queue (
    number     INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    declared   TEXT    NOT NULL,
    overridden TEXT,
    paused     INTEGER NOT NULL DEFAULT 0,
    paused_by  TEXT,
    contract   TEXT,
    created_at INTEGER NOT NULL
);

-- place: 0 waiting, 1 in flight, 2 failed. A task without a key keeps place 0
-- while it runs for the first time: nobody asks for its place, and not
-- writing the row is what makes its claim cheap.
-- attempts and claims are as before the running claim; while a task is
-- processing both are one higher than written here.
-- settings is what the put said in place of the queue's, as JSON.
CREATE TABLE gristmill_task (
    id               INTEGER PRIMARY KEY,
    queue            INTEGER NOT NULL,
    key              TEXT,
    place            INTEGER NOT NULL DEFAULT 0,
    blocked          INTEGER NOT NULL DEFAULT 0,
    unique_active    INTEGER NOT NULL DEFAULT 0,
    priority         INTEGER NOT NULL,
    run_at           INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    attempts         INTEGER NOT NULL DEFAULT 0,
    claims           INTEGER NOT NULL DEFAULT 0,
    expiries         INTEGER NOT NULL DEFAULT 0,
    started_releases INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    encoding         INTEGER NOT NULL,
    grp              TEXT,
    source           TEXT,
    headers          TEXT,
    settings         TEXT,
    -- Of the encoding and the payload (checksum.rs): a row that does not fit it
    -- is not handed out. One that was written by hand may have none.
    checksum         INTEGER,
    payload          BLOB    NOT NULL,
    prev_run_at      INTEGER,
    claimed_at       INTEGER,
    settled_token    BLOB,
    failed_at        INTEGER,
    error            TEXT,
    history          TEXT,
    note             TEXT,
    note_by          TEXT,
    resolved_by      TEXT,
    resolved_at      INTEGER,
    -- What the handler kept for the next attempt, behind eight bytes of checksum.
    -- Last, and null of most: then reading the others costs no more.
    checkpoint       BLOB
);

-- The two places of a key, one task each, refused by the database itself. Few
-- indexes on purpose: an insert opens every one of them, also those whose
-- condition the row does not meet. What is failed or blocked is found through
-- tables of its own.
CREATE UNIQUE INDEX gristmill_task_place ON gristmill_task (queue, key, place)
    WHERE key IS NOT NULL AND place < 2;
-- unique: active means one task over both places.
CREATE UNIQUE INDEX gristmill_task_active ON gristmill_task (queue, key)
    WHERE key IS NOT NULL AND unique_active = 1 AND place < 2;

-- Exactly the failed tasks.
CREATE TABLE gristmill_failed (
    id        INTEGER PRIMARY KEY,
    queue     INTEGER NOT NULL,
    key       TEXT,
    failed_at INTEGER NOT NULL
);
CREATE INDEX gristmill_failed_queue ON gristmill_failed (queue, id);
CREATE INDEX gristmill_failed_key ON gristmill_failed (queue, key) WHERE key IS NOT NULL;
CREATE INDEX gristmill_failed_at ON gristmill_failed (queue, failed_at);

-- Exactly the blocked tasks, for the sweep that looks for missed ones.
CREATE TABLE gristmill_blocked (
    id INTEGER PRIMARY KEY
);

-- THE claim order: exactly the pending tasks that are not blocked. A claim
-- deletes from its front, so it never meets what was claimed before.
-- grp is written only where claims look at groups ('' for no group); delayed only
-- serves the split of the counts.
CREATE TABLE gristmill_ready (
    queue    INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    run_at   INTEGER NOT NULL,
    id       INTEGER NOT NULL,
    source   TEXT,
    grp      TEXT,
    delayed  INTEGER NOT NULL,
    PRIMARY KEY (queue, priority, run_at, id)
) WITHOUT ROWID;
CREATE INDEX gristmill_ready_source ON gristmill_ready (queue, source, priority, run_at, id)
    WHERE source IS NOT NULL;
CREATE INDEX gristmill_ready_group ON gristmill_ready (queue, grp, priority, run_at, id)
    WHERE grp IS NOT NULL;
CREATE INDEX gristmill_ready_round ON gristmill_ready (queue, priority, grp)
    WHERE grp IS NOT NULL;
CREATE INDEX gristmill_ready_delayed ON gristmill_ready (run_at) WHERE delayed = 1;

-- One row a claim, however many tasks it took: ids holds those still open,
-- eight bytes each, big end first, in the order they were claimed. length is how
-- long it lasts from its last extension on. progress says how far they are, where
-- handlers do: {"ID": {"done", "total", "message", "at"}}.
CREATE TABLE gristmill_lease (
    number     INTEGER PRIMARY KEY,
    token      BLOB    NOT NULL UNIQUE,
    queue      INTEGER NOT NULL,
    worker     TEXT    NOT NULL,
    claimed_at INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    length     INTEGER NOT NULL,
    grp        TEXT    NOT NULL,
    slot       INTEGER,
    open       INTEGER NOT NULL,
    ids        BLOB    NOT NULL,
    progress   TEXT
);
CREATE INDEX gristmill_lease_until ON gristmill_lease (until, token);
CREATE INDEX gristmill_lease_queue_until ON gristmill_lease (queue, until, token);
CREATE INDEX gristmill_lease_group ON gristmill_lease (queue, grp, until);
-- A slot is held by one lease of its group at a time.
CREATE UNIQUE INDEX gristmill_lease_slot ON gristmill_lease (queue, grp, slot)
    WHERE slot IS NOT NULL;

-- The buckets of queues that have a rate: when each is full again ('' for the queue's
-- own, and for tasks without a group). One that is missing is full.
CREATE TABLE gristmill_bucket (
    queue   INTEGER NOT NULL,
    grp     TEXT    NOT NULL,
    full_at INTEGER NOT NULL,
    PRIMARY KEY (queue, grp)
) WITHOUT ROWID;

-- Whose turn it was last in a priority, where claims take turns between groups.
CREATE TABLE gristmill_turn (
    queue    INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    grp      TEXT    NOT NULL,
    PRIMARY KEY (queue, priority)
) WITHOUT ROWID;

-- Done and resolved tasks that their queue keeps: in no claim, key or
-- capacity index.
CREATE TABLE gristmill_done (
    id               INTEGER PRIMARY KEY,
    queue            INTEGER NOT NULL,
    key              TEXT,
    unique_active    INTEGER NOT NULL,
    priority         INTEGER NOT NULL,
    run_at           INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    attempts         INTEGER NOT NULL,
    claims           INTEGER NOT NULL,
    expiries         INTEGER NOT NULL,
    started_releases INTEGER NOT NULL,
    encoding         INTEGER NOT NULL,
    grp              TEXT,
    source           TEXT,
    headers          TEXT,
    settings         TEXT,
    payload          BLOB    NOT NULL,
    prev_run_at      INTEGER,
    claimed_at       INTEGER,
    settled_token    BLOB,
    failed_at        INTEGER,
    error            TEXT,
    history          TEXT,
    note             TEXT,
    note_by          TEXT,
    resolved_by      TEXT,
    resolved_at      INTEGER NOT NULL
);
CREATE INDEX gristmill_done_resolved_at ON gristmill_done (queue, resolved_at);
CREATE INDEX gristmill_done_key ON gristmill_done (queue, key) WHERE key IS NOT NULL;

-- Tasks as readers see them, without their payload. in_order says whether the
-- task stands in the claim order; what does not, and is neither blocked nor
-- failed, is processing.
CREATE VIEW gristmill_shown AS
SELECT t.id, t.queue, t.key, t.grp, t.source, t.priority, t.run_at, t.created_at,
       t.place, t.blocked, t.unique_active, t.attempts, t.claims, t.expiries,
       t.started_releases, t.cancel_requested, t.encoding, t.prev_run_at,
       t.claimed_at, t.settled_token, t.failed_at, t.error, t.history, t.note,
       t.note_by, t.resolved_by, t.resolved_at, t.headers, t.settings,
       EXISTS (SELECT 1 FROM gristmill_ready r
                WHERE r.queue = t.queue AND r.priority = t.priority
                  AND r.run_at = t.run_at AND r.id = t.id) AS in_order
  FROM gristmill_task t;

-- Kept tasks in the same shape; place 3 stands for done.
CREATE VIEW gristmill_shown_done AS
SELECT id, queue, key, grp, source, priority, run_at, created_at,
       3 AS place, 0 AS blocked, unique_active, attempts, claims, expiries,
       started_releases, 0 AS cancel_requested, encoding, prev_run_at,
       claimed_at, settled_token, failed_at, error, history, note,
       note_by, resolved_by, resolved_at, headers, settings,
       0 AS in_order
  FROM gristmill_done;

-- Callers' ids, remembered for a queue's id_window.
CREATE TABLE gristmill_id (
    queue  INTEGER NOT NULL,
    id     TEXT    NOT NULL,
    task   INTEGER NOT NULL,
    digest BLOB    NOT NULL,
    until  INTEGER NOT NULL,
    PRIMARY KEY (queue, id)
) WITHOUT ROWID;
CREATE INDEX gristmill_id_until ON gristmill_id (until);

-- Windows of queues that say unique_for: until when the put of a key keeps out others,
-- and which task it put. Without a row nothing is kept out.
CREATE TABLE gristmill_key_window (
    queue INTEGER NOT NULL,
    key   TEXT    NOT NULL,
    task  INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE INDEX gristmill_key_window_until ON gristmill_key_window (until);

-- What came of tasks, for who waits and for as long as their queue says; and, while a
-- task stands, that its end is wanted ('open'). A value lies behind eight bytes of
-- checksum. until: forgotten then, or, while it is open, looked at again.
CREATE TABLE gristmill_ending (
    id       INTEGER PRIMARY KEY,
    queue    INTEGER NOT NULL,
    ending   TEXT    NOT NULL,
    encoding INTEGER,
    value    BLOB,
    error    TEXT,
    until    INTEGER NOT NULL
);
CREATE INDEX gristmill_ending_until ON gristmill_ending (until, id);
CREATE INDEX gristmill_ending_open ON gristmill_ending (id) WHERE ending = 'open';

-- Kept counts: what stands, then what happened since the queue was declared.
CREATE TABLE gristmill_count (
    queue            INTEGER PRIMARY KEY,
    ready            INTEGER NOT NULL DEFAULT 0,
    delayed          INTEGER NOT NULL DEFAULT 0,
    blocked          INTEGER NOT NULL DEFAULT 0,
    processing       INTEGER NOT NULL DEFAULT 0,
    failed_now       INTEGER NOT NULL DEFAULT 0,
    done_kept        INTEGER NOT NULL DEFAULT 0,
    put              INTEGER NOT NULL DEFAULT 0,
    duplicate        INTEGER NOT NULL DEFAULT 0,
    replaced         INTEGER NOT NULL DEFAULT 0,
    refused          INTEGER NOT NULL DEFAULT 0,
    claimed          INTEGER NOT NULL DEFAULT 0,
    done             INTEGER NOT NULL DEFAULT 0,
    retried          INTEGER NOT NULL DEFAULT 0,
    failed           INTEGER NOT NULL DEFAULT 0,
    released         INTEGER NOT NULL DEFAULT 0,
    expired          INTEGER NOT NULL DEFAULT 0,
    lease_lost       INTEGER NOT NULL DEFAULT 0,
    cancelled        INTEGER NOT NULL DEFAULT 0,
    discarded        INTEGER NOT NULL DEFAULT 0,
    resolved         INTEGER NOT NULL DEFAULT 0,
    operator_retried INTEGER NOT NULL DEFAULT 0,
    subject_gone     INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE gristmill_minute (
    queue  INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    put    INTEGER NOT NULL,
    done   INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (queue, minute)
) WITHOUT ROWID;

-- Fires up to decided_until are decided; later ones are not.
CREATE TABLE gristmill_schedule (
    name          TEXT PRIMARY KEY,
    declared      TEXT    NOT NULL,
    payload       BLOB,
    paused        INTEGER NOT NULL DEFAULT 0,
    paused_by     TEXT,
    decided_until INTEGER NOT NULL,
    last_fire     INTEGER,
    last_tasks    BLOB    NOT NULL,
    created_at    INTEGER NOT NULL
) WITHOUT ROWID;

-- Small records beside tasks, each changed as a whole by who knows its version: who leads,
-- who works, operations under way. keep is after how long without a change it is forgotten.
CREATE TABLE gristmill_document (
    kind       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    keep       INTEGER,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

-- A sweep looks at those alone.
CREATE INDEX gristmill_document_kept ON gristmill_document (kind) WHERE keep IS NOT NULL;
