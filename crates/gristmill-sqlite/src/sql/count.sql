-- The kept numbers.

-- name: count_new
INSERT OR IGNORE INTO gristmill_count (queue) VALUES (:queue);

-- name: count_add
UPDATE gristmill_count SET
    ready = ready + :ready, delayed = delayed + :delayed, blocked = blocked + :blocked,
    processing = processing + :processing, failed_now = failed_now + :failed_now, done_kept = done_kept + :done_kept,
    put = put + :put, duplicate = duplicate + :duplicate, replaced = replaced + :replaced,
    refused = refused + :refused, claimed = claimed + :claimed, done = done + :done,
    retried = retried + :retried, failed = failed + :failed, released = released + :released,
    expired = expired + :expired, lease_lost = lease_lost + :lease_lost, cancelled = cancelled + :cancelled,
    discarded = discarded + :discarded, resolved = resolved + :resolved,
    operator_retried = operator_retried + :operator_retried, subject_gone = subject_gone + :subject_gone
 WHERE queue = :queue;

-- name: count_all
SELECT queue, ready, delayed, blocked, processing, failed_now, done_kept,
       put, duplicate, replaced, refused, claimed, done, retried, failed, released,
       expired, lease_lost, cancelled, discarded, resolved, operator_retried, subject_gone
  FROM gristmill_count ORDER BY queue;

-- name: count_standing
SELECT ready + delayed + blocked AS pending, processing, failed_now FROM gristmill_count WHERE queue = :queue;

-- name: minute_add
INSERT INTO gristmill_minute (queue, minute, put, done, failed, wait_100ms, wait_1s, wait_10s,
       wait_1m, wait_10m, wait_1h, wait_longer)
VALUES (:queue, :minute, :put, :done, :failed, :wait_100ms, :wait_1s, :wait_10s, :wait_1m,
       :wait_10m, :wait_1h, :wait_longer)
    ON CONFLICT (queue, minute) DO UPDATE SET
       put = put + excluded.put, done = done + excluded.done, failed = failed + excluded.failed,
       wait_100ms = wait_100ms + excluded.wait_100ms,
       wait_1s = wait_1s + excluded.wait_1s,
       wait_10s = wait_10s + excluded.wait_10s,
       wait_1m = wait_1m + excluded.wait_1m,
       wait_10m = wait_10m + excluded.wait_10m,
       wait_1h = wait_1h + excluded.wait_1h,
       wait_longer = wait_longer + excluded.wait_longer;

-- name: minute_list
SELECT minute, put, done, failed, wait_100ms, wait_1s, wait_10s, wait_1m, wait_10m, wait_1h, wait_longer
  FROM gristmill_minute WHERE queue = :queue AND minute >= :since ORDER BY minute;

-- name: minute_prune
DELETE FROM gristmill_minute WHERE queue = :queue AND minute IN (
    SELECT minute FROM gristmill_minute WHERE queue = :queue AND minute < :before
     ORDER BY minute LIMIT :limit);

-- name: minute_ahead
-- Minutes that have not come: a clock that was ahead counted in them.
DELETE FROM gristmill_minute WHERE queue = :queue AND minute > :now;
