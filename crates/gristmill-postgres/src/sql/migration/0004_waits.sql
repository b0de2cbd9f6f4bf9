-- How long what was claimed had been due, by bucket: up to 100 ms, a second, ten, a minute,
-- ten, an hour, and longer. Null where nothing was claimed.
ALTER TABLE gristmill.delta ADD COLUMN waits integer[];
ALTER TABLE gristmill.minute ADD COLUMN waits bigint[];
