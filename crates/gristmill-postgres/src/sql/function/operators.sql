-- What operators do and see by SQL: tasks, queues, numbers. Who did it is the
-- session's user: the one name that nobody can choose.

-- Every task, for a person to read. The token is left out: whoever reads it could
-- settle in the holder's name. payload is null where it is no JSON; raw always has
-- the bytes.
CREATE VIEW gristmill.tasks AS
SELECT s.id, q.name::text AS queue, s.state, s.blocked, s.key::text AS key,
       s.grp::text AS "group", s.source::text AS source, s.priority, s.attempts, s.claims,
       s.expiries, s.error, gristmill.as_json(s.payload, s.encoding) AS payload, s.headers,
       -- What is its own, not its queue's; spans of the backoff in seconds.
       gristmill.span(gristmill.own_number(s.settings, '{timeout}', 1, NULL)) AS timeout,
       CASE jsonb_typeof(s.settings -> 'max_attempts') WHEN 'null' THEN 'unlimited'
            ELSE s.settings ->> 'max_attempts' END AS max_attempts,
       CASE WHEN s.settings -> 'backoff' IS NOT NULL
            THEN jsonb_build_object(
                     'base', gristmill.own_number(s.settings, '{backoff,base}', 0, NULL) / 1e6,
                     'cap', gristmill.own_number(s.settings, '{backoff,cap}', 0, NULL) / 1e6,
                     'jitter', s.settings #> '{backoff,jitter}') END AS backoff,
       s.created_at, s.run_at, s.claimed_at, s.worker, s.until AS lease_until,
       -- How far it is, as its handler says.
       s.progress,
       s.cancel_requested, s.failed_at, s.note, s.note_by, s.resolved_by, s.resolved_at,
       s.slot, s.history, s.payload AS raw,
       CASE WHEN s.claims > 0 THEN (SELECT c.state FROM gristmill.checkpoint c
                                     WHERE c.id = s.id) END AS checkpoint,
       CASE WHEN s.state = 'done' THEN (SELECT gristmill.as_json(e.value, e.encoding)
                                          FROM gristmill.ending e WHERE e.id = s.id) END AS result
  FROM gristmill.shown s JOIN gristmill.queue q ON q.number = s.queue;

-- One operator's step on one task.
CREATE FUNCTION gristmill.operate(p_action text, p_id bigint, p_note text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM gristmill.must_be('id', p_id IS NULL, 'a task''s number');
    RETURN (SELECT o.answer FROM gristmill.operate_one(p_action, p_id, session_user::text,
        gristmill.cut(p_note), clock_timestamp()) o);
END
$$;

-- What operators do to one task: moved, cancel_requested, duplicate,
-- wrong_state, gone, or held (an open transaction has it).
CREATE FUNCTION gristmill.cancel(id bigint, note text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN gristmill.operate('cancel', $1, $2);
END
$$;

CREATE FUNCTION gristmill.resolve(id bigint, note text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN gristmill.operate('resolve', $1, $2);
END
$$;

CREATE FUNCTION gristmill.discard(id bigint, note text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN gristmill.operate('discard', $1, $2);
END
$$;

-- With fresh, what its handler had kept is forgotten.
CREATE FUNCTION gristmill.retry_failed_task(
    id bigint, note text DEFAULT NULL, fresh boolean DEFAULT false
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN gristmill.operate(CASE WHEN $3 THEN 'retry_fresh' ELSE 'retry' END, $1, $2);
END
$$;

-- Sends every failed task of a queue back, with the note; its resolver is
-- cleared. Returns how many; those whose key waits again stay failed.
CREATE FUNCTION gristmill.retry_failed(queue text, note text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_queue integer := gristmill.known_queue($1);
    v_id    bigint;
    v_moved bigint := 0;
BEGIN
    FOR v_id IN SELECT f.id FROM gristmill.failed f WHERE f.queue = v_queue ORDER BY f.id LOOP
        IF gristmill.operate('retry', v_id, $2) = 'moved' THEN
            v_moved := v_moved + 1;
        END IF;
    END LOOP;
    RETURN v_moved;
END
$$;

-- Stops claims of a queue, or lets them go on; puts always do. True when it was
-- not so before.
CREATE FUNCTION gristmill.set_paused(p_queue text, p_paused boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_number integer := gristmill.known_queue(p_queue);
    v_was    boolean;
BEGIN
    -- As every change of a queue: one at a time.
    PERFORM 1 FROM gristmill.meta m FOR UPDATE;
    SELECT q.paused INTO v_was FROM gristmill.queue q WHERE q.number = v_number;
    UPDATE gristmill.queue q
       SET paused = p_paused, paused_by = CASE WHEN p_paused THEN session_user::text END
     WHERE q.number = v_number;
    RETURN v_was <> p_paused;
END
$$;

CREATE FUNCTION gristmill.pause(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN gristmill.set_paused($1, true);
END
$$;

-- Workers hear of it with the commit.
CREATE FUNCTION gristmill.resume(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM gristmill.wake($1);
    RETURN gristmill.set_paused($1, false);
END
$$;

-- A queue at a glance.
CREATE FUNCTION gristmill.stats()
RETURNS TABLE (
    queue text, ready bigint, delayed bigint, blocked bigint, processing bigint, failed bigint,
    total bigint, "wait" interval, paused boolean
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.queue, s.ready, s.delayed, s.blocked, s.processing, s.failed_now,
           s.ready + s.delayed + s.blocked + s.processing + s.failed_now,
           s.now - s.oldest_ready, s.paused
      FROM gristmill.queue_stats() s;
END
$$;
