-- The same tables as in SQLite, beside the queue's schema in one database.
CREATE TABLE IF NOT EXISTS item (
    id         bigint PRIMARY KEY,
    name       text   NOT NULL,
    first_seen timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS item_price (
    id          bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    item_id     bigint NOT NULL REFERENCES item (id) ON DELETE CASCADE,
    price_cents bigint NOT NULL,
    seen_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS item_price_of_item ON item_price (item_id, id);
CREATE TABLE IF NOT EXISTS item_trend (
    item_id     bigint PRIMARY KEY REFERENCES item (id) ON DELETE CASCADE,
    direction   text   NOT NULL,
    slope_cents double precision NOT NULL,
    prices      bigint NOT NULL,
    computed_at timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS item_anomaly (
    price_id   bigint PRIMARY KEY REFERENCES item_price (id) ON DELETE CASCADE,
    item_id    bigint NOT NULL REFERENCES item (id) ON DELETE CASCADE,
    mean_cents double precision NOT NULL,
    deviations double precision NOT NULL,
    found_at   timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS item_anomaly_of_item ON item_anomaly (item_id);
