-- The kept numbers.

-- name: count_new
INSERT OR IGNORE INTO gristmill_count (queue) VALUES (?1);

-- name: count_add
UPDATE gristmill_count SET
    ready = ready + ?2, delayed = delayed + ?3, blocked = blocked + ?4,
    processing = processing + ?5, failed_now = failed_now + ?6, done_kept = done_kept + ?7,
    put = put + ?8, duplicate = duplicate + ?9, replaced = replaced + ?10,
    refused = refused + ?11, claimed = claimed + ?12, done = done + ?13,
    retried = retried + ?14, failed = failed + ?15, released = released + ?16,
    expired = expired + ?17, lease_lost = lease_lost + ?18, cancelled = cancelled + ?19,
    discarded = discarded + ?20, resolved = resolved + ?21,
    operator_retried = operator_retried + ?22, subject_gone = subject_gone + ?23
 WHERE queue = ?1;

-- name: count_all
SELECT queue, ready, delayed, blocked, processing, failed_now, done_kept,
       put, duplicate, replaced, refused, claimed, done, retried, failed, released,
       expired, lease_lost, cancelled, discarded, resolved, operator_retried, subject_gone
  FROM gristmill_count ORDER BY queue;

-- name: count_standing
SELECT ready + delayed + blocked, processing, failed_now FROM gristmill_count WHERE queue = ?1;

-- name: minute_add
INSERT INTO gristmill_minute (queue, minute, put, done, failed) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (queue, minute) DO UPDATE SET
       put = put + excluded.put, done = done + excluded.done, failed = failed + excluded.failed;

-- name: minute_list
SELECT minute, put, done, failed FROM gristmill_minute WHERE queue = ?1 AND minute >= ?2 ORDER BY minute;

-- name: minute_prune
DELETE FROM gristmill_minute WHERE queue = ?1 AND minute < ?2;

-- name: minute_ahead
-- Minutes that have not come: a clock that was ahead counted in them.
DELETE FROM gristmill_minute WHERE queue = ?1 AND minute > ?2;
