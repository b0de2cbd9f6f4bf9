-- The application's own tables. They stand in the queue's file, so that one
-- transaction can change items and put tasks about them.
CREATE TABLE IF NOT EXISTS item (
    id         INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    first_seen INTEGER NOT NULL DEFAULT (unixepoch())
);

-- A row for each change of an item's price, in the order they were seen.
CREATE TABLE IF NOT EXISTS item_price (
    id          INTEGER PRIMARY KEY,
    item_id     INTEGER NOT NULL REFERENCES item (id) ON DELETE CASCADE,
    price_cents INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL DEFAULT (unixepoch())
);
CREATE INDEX IF NOT EXISTS item_price_of_item ON item_price (item_id, id);

CREATE TABLE IF NOT EXISTS item_trend (
    item_id     INTEGER PRIMARY KEY REFERENCES item (id) ON DELETE CASCADE,
    direction   TEXT    NOT NULL,
    slope_cents REAL    NOT NULL,
    prices      INTEGER NOT NULL,
    computed_at INTEGER NOT NULL
);

-- One row a price at most, so that a task that runs twice finds it once.
CREATE TABLE IF NOT EXISTS item_anomaly (
    price_id   INTEGER PRIMARY KEY REFERENCES item_price (id) ON DELETE CASCADE,
    item_id    INTEGER NOT NULL REFERENCES item (id) ON DELETE CASCADE,
    mean_cents REAL    NOT NULL,
    deviations REAL    NOT NULL,
    found_at   INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS item_anomaly_of_item ON item_anomaly (item_id);
