-- Bound subjects: the application's tables and the triggers on them. What stands in
-- braces is put in.

-- name: subject_table
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND lower(name) = lower(:name);

-- name: subject_column
SELECT 1 FROM pragma_table_info(:table) WHERE lower(name) = lower(:column);

-- name: subject_exists
-- A template. The first condition can use an index of the column whatever its
-- type; the second makes sure that the key is the text a deletion looks for
-- ('042' is not the subject 42).
SELECT 1 FROM {table}
 WHERE {column} IN (:key, CAST(:key AS NUMERIC)) AND CAST({column} AS TEXT) = :key LIMIT 1;

-- name: subject_spelling
-- A template. How the column writes what the key means to it ('042' is 42 to a
-- column of numbers): a text the refusal can name.
SELECT CAST({column} AS TEXT) FROM {table}
 WHERE {column} IN (:key, CAST(:key AS NUMERIC)) LIMIT 1;

-- name: subject_triggers
SELECT count(*) AS standing FROM sqlite_schema WHERE type = 'trigger' AND name IN (:deleted, :updated) AND lower(tbl_name) = lower(:table);

-- name: subject_trigger
-- A template: {trigger}, {table}, {column} are quoted identifiers, {event} is
-- the event, {queue} the queue's number. Whoever deletes the subject, by
-- whatever connection, takes its tasks along in the same transaction.
CREATE TRIGGER {trigger} AFTER {event} ON {table}
BEGIN
    UPDATE gristmill_count SET
        ready = ready - (
            SELECT count(*) FROM gristmill_task t JOIN gristmill_ready r
                ON r.queue = t.queue AND r.priority = t.priority AND r.run_at = t.run_at AND r.id = t.id
             WHERE t.queue = {queue} AND t.key = CAST(OLD.{column} AS TEXT) AND t.place < 2
               AND r.delayed = 0),
        delayed = delayed - (
            SELECT count(*) FROM gristmill_task t JOIN gristmill_ready r
                ON r.queue = t.queue AND r.priority = t.priority AND r.run_at = t.run_at AND r.id = t.id
             WHERE t.queue = {queue} AND t.key = CAST(OLD.{column} AS TEXT) AND t.place < 2
               AND r.delayed = 1),
        blocked = blocked - (
            SELECT count(*) FROM gristmill_task
             WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT) AND place < 2 AND blocked = 1),
        processing = processing - (
            SELECT count(*) FROM gristmill_shown
             WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT) AND place < 2 AND place = 1
               AND NOT in_order),
        failed_now = failed_now - (
            SELECT count(*) FROM gristmill_failed WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT)),
        done_kept = done_kept - (
            SELECT count(*) FROM gristmill_done WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT)),
        subject_gone = subject_gone
            + (SELECT count(*) FROM gristmill_task WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT) AND place < 2)
            + (SELECT count(*) FROM gristmill_failed WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT))
     WHERE queue = {queue};
    DELETE FROM gristmill_ready WHERE (queue, priority, run_at, id) IN (
        SELECT queue, priority, run_at, id FROM gristmill_task
         WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT) AND place < 2);
    DELETE FROM gristmill_blocked WHERE id IN (
        SELECT id FROM gristmill_task WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT) AND place < 2);
    DELETE FROM gristmill_task WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT) AND place < 2;
    DELETE FROM gristmill_task WHERE id IN (
        SELECT id FROM gristmill_failed WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT));
    DELETE FROM gristmill_failed WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT);
    DELETE FROM gristmill_done WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT);
    DELETE FROM gristmill_key_window WHERE queue = {queue} AND key = CAST(OLD.{column} AS TEXT);
END;

-- name: subject_drop
DROP TRIGGER IF EXISTS {trigger};
