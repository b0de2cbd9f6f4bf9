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
END;
