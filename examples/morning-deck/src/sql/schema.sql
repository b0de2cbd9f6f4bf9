-- The application's own tables. With the queue in the database they stand in
-- the queue's file, so that one transaction changes a row and its task.
-- Times are microseconds since 1970.
CREATE TABLE IF NOT EXISTS reader (
    id        INTEGER PRIMARY KEY,
    mail      TEXT    NOT NULL UNIQUE,
    zone      TEXT    NOT NULL,
    interests TEXT    NOT NULL DEFAULT '',
    credits   INTEGER NOT NULL CHECK (credits >= 0)
);

CREATE TABLE IF NOT EXISTS source (
    id              INTEGER PRIMARY KEY,
    reader_id       INTEGER NOT NULL REFERENCES reader (id) ON DELETE CASCADE,
    kind            TEXT    NOT NULL CHECK (kind IN ('rss', 'web', 'reddit')),
    url             TEXT    NOT NULL,
    refresh_minutes INTEGER NOT NULL CHECK (refresh_minutes > 0),
    status          TEXT    NOT NULL DEFAULT 'IDLE'
                    CHECK (status IN ('IDLE', 'QUEUED', 'FETCHING', 'ERROR')),
    status_at       INTEGER NOT NULL,
    error           TEXT,
    -- Failures since it last ended well.
    attempts        INTEGER NOT NULL DEFAULT 0,
    -- The last fetch that succeeded; none before the first import.
    fetched_at      INTEGER,
    UNIQUE (reader_id, url)
);

CREATE TABLE IF NOT EXISTS news_item (
    id              INTEGER PRIMARY KEY,
    source_id       INTEGER NOT NULL REFERENCES source (id) ON DELETE CASCADE,
    guid            TEXT    NOT NULL,
    url             TEXT    NOT NULL,
    title           TEXT    NOT NULL,
    content         TEXT    NOT NULL,
    status          TEXT    NOT NULL
                    CHECK (status IN ('NEW', 'PENDING', 'PROCESSING', 'DONE', 'ERROR')),
    status_at       INTEGER NOT NULL,
    error           TEXT,
    attempts        INTEGER NOT NULL DEFAULT 0,
    summary         TEXT,
    tags            TEXT,
    score           INTEGER CHECK (score BETWEEN 0 AND 100),
    score_reasoning TEXT,
    done_at         INTEGER,
    indexed_at      INTEGER,
    UNIQUE (source_id, guid)
);
CREATE INDEX IF NOT EXISTS news_item_by_status ON news_item (status, source_id);
CREATE INDEX IF NOT EXISTS news_item_by_done ON news_item (source_id, done_at);
CREATE INDEX IF NOT EXISTS news_item_unindexed ON news_item (id)
    WHERE score IS NOT NULL AND indexed_at IS NULL;

CREATE TABLE IF NOT EXISTS briefing (
    id               INTEGER PRIMARY KEY,
    reader_id        INTEGER NOT NULL REFERENCES reader (id) ON DELETE CASCADE,
    title            TEXT    NOT NULL,
    -- In the reader's zone, as HH:MM.
    at               TEXT    NOT NULL,
    -- 1 is Monday; none is daily.
    weekday          INTEGER CHECK (weekday BETWEEN 1 AND 7),
    by_mail          INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    status           TEXT    NOT NULL DEFAULT 'ACTIVE'
                     CHECK (status IN ('ACTIVE', 'QUEUED', 'PROCESSING', 'ERROR')),
    status_at        INTEGER NOT NULL,
    error            TEXT,
    attempts         INTEGER NOT NULL DEFAULT 0,
    last_executed_at INTEGER,
    -- The reader's day it was last executed for.
    last_day         TEXT
);

-- One a day at most, so that a task that runs twice reports once.
CREATE TABLE IF NOT EXISTS report (
    id          INTEGER PRIMARY KEY,
    briefing_id INTEGER NOT NULL REFERENCES briefing (id) ON DELETE CASCADE,
    day         TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    mailed_at   INTEGER,
    -- When nothing was left to do about it.
    closed_at   INTEGER,
    UNIQUE (briefing_id, day)
);

CREATE TABLE IF NOT EXISTS report_item (
    report_id INTEGER NOT NULL REFERENCES report (id) ON DELETE CASCADE,
    position  INTEGER NOT NULL,
    item_id   INTEGER NOT NULL REFERENCES news_item (id) ON DELETE CASCADE,
    PRIMARY KEY (report_id, position)
);
CREATE INDEX IF NOT EXISTS report_item_of_item ON report_item (item_id);
