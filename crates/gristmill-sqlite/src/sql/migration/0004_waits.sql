-- How long what was claimed in a minute had been due, by bucket.
ALTER TABLE gristmill_minute ADD COLUMN wait_100ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gristmill_minute ADD COLUMN wait_1s INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gristmill_minute ADD COLUMN wait_10s INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gristmill_minute ADD COLUMN wait_1m INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gristmill_minute ADD COLUMN wait_10m INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gristmill_minute ADD COLUMN wait_1h INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gristmill_minute ADD COLUMN wait_longer INTEGER NOT NULL DEFAULT 0;
