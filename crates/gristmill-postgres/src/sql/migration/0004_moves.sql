-- The moves everything else is made of: a task enters the claim order, frees
-- its key, is kept. Each appends its own counts.

-- A task that was claimed goes back: it keeps its key's in-flight place.
CREATE FUNCTION gristmill.go_back(
    p_task gristmill.task, p_slotted boolean, p_now timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_task gristmill.task := p_task;
BEGIN
    v_task.blocked := false;
    v_task.in_flight := true;
    v_task.delayed := v_task.run_at > p_now;
    v_task.slotted := p_slotted;
    INSERT INTO gristmill.task VALUES (v_task.*);
    IF v_task.delayed THEN
        INSERT INTO gristmill.delayed (run_at, id, queue)
        VALUES (v_task.run_at, v_task.id, v_task.queue);
    END IF;
    INSERT INTO gristmill.delta (at, queue, ready, delayed)
    VALUES (p_now, v_task.queue, (NOT v_task.delayed)::integer, v_task.delayed::integer);
END
$$;

-- Tasks that waited behind these keys enter the claim order. A task that was
-- put but not committed meanwhile is missed here; the sweep finds it.
CREATE FUNCTION gristmill.unblock(p_queue integer, p_keys text[], p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_entered integer;
BEGIN
    WITH entered AS (
        UPDATE gristmill.task t SET blocked = false, delayed = t.run_at > p_now
         WHERE t.queue = p_queue AND t.key = ANY (p_keys) AND t.blocked
        RETURNING t.id, t.run_at, t.delayed
    ), waiting AS (
        INSERT INTO gristmill.delayed (run_at, id, queue)
        SELECT e.run_at, e.id, p_queue FROM entered e WHERE e.delayed
    ), counted AS (
        INSERT INTO gristmill.delta (at, queue, ready, delayed, blocked)
        SELECT p_now, p_queue, count(*) FILTER (WHERE NOT e.delayed),
               count(*) FILTER (WHERE e.delayed), -count(*)
          FROM entered e HAVING count(*) > 0
    )
    SELECT count(*) INTO v_entered FROM entered;
    RETURN v_entered;
END
$$;

-- Frees the in-flight place of keys; returns how many tasks waited behind.
CREATE FUNCTION gristmill.free_keys(p_queue integer, p_keys text[], p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM gristmill.flight f WHERE f.queue = p_queue AND f.key = ANY (p_keys);
    RETURN gristmill.unblock(p_queue, p_keys, p_now);
END
$$;

-- Takes a task out of the counts of pending that it is in, before it leaves.
CREATE FUNCTION gristmill.count_out(p_task gristmill.task, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_delayed boolean := false;
BEGIN
    IF p_task.delayed THEN
        DELETE FROM gristmill.delayed d WHERE d.run_at = p_task.run_at AND d.id = p_task.id;
        v_delayed := FOUND;
    END IF;
    INSERT INTO gristmill.delta (at, queue, ready, delayed, blocked)
    VALUES (p_now, p_task.queue, -(NOT p_task.blocked AND NOT v_delayed)::integer,
            -v_delayed::integer, -p_task.blocked::integer);
END
$$;

-- The history with one more attempt: the last ten.
CREATE FUNCTION gristmill.told(
    p_history jsonb, p_worker text, p_claimed_at timestamptz, p_now timestamptz, p_end text,
    p_error text, p_kept integer
) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_history jsonb := coalesce(p_history, '[]');
BEGIN
    WHILE jsonb_array_length(v_history) >= p_kept LOOP
        v_history := v_history - 0;
    END LOOP;
    RETURN v_history || jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
        'worker', p_worker, 'claimed_at', p_claimed_at, 'ended_at', p_now, 'end', p_end,
        'error', p_error)));
END
$$;

-- Ends one claimed task as decided: done, cancelled, failed or back. The task
-- has its attempt counted and its history written; the lease is the caller's.
-- Returns how many tasks waited behind its key.
CREATE FUNCTION gristmill.end_attempt(
    p_queue gristmill.queue, p_task gristmill.task, p_next gristmill.next, p_now timestamptz
) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_task  gristmill.task := p_task;
    v_freed integer := 0;
BEGIN
    IF p_next.kind = 'back' THEN
        v_task.run_at := p_next.run_at;
        v_task.prev_run_at := p_next.prev_run_at;
        v_task.attempts := p_next.attempts;
        v_task.expiries := p_next.expiries;
        v_task.started_releases := p_next.started_releases;
        PERFORM gristmill.go_back(v_task, p_queue.slots IS NOT NULL, p_now);
        INSERT INTO gristmill.delta (at, queue, processing) VALUES (p_now, p_queue.number, -1);
        RETURN 0;
    END IF;
    IF v_task.key IS NOT NULL THEN
        v_freed := gristmill.free_keys(p_queue.number, ARRAY[v_task.key], p_now);
    END IF;
    v_task.in_flight := false;
    IF p_next.kind = 'failed' THEN
        v_task.failed_at := p_now;
        v_task.error := p_next.error;
        INSERT INTO gristmill.failed VALUES (v_task.*);
        INSERT INTO gristmill.delta (at, queue, processing, failed_now, failed)
        VALUES (p_now, p_queue.number, -1, 1, 1);
    ELSIF p_next.kind = 'done' THEN
        IF p_queue.keep_done IS NOT NULL THEN
            v_task.resolved_at := p_now;
            INSERT INTO gristmill.done VALUES (v_task.*);
        END IF;
        INSERT INTO gristmill.delta (at, queue, processing, done, done_kept)
        VALUES (p_now, p_queue.number, -1, 1, (p_queue.keep_done IS NOT NULL)::integer);
    ELSE
        INSERT INTO gristmill.delta (at, queue, processing, cancelled)
        VALUES (p_now, p_queue.number, -1, 1);
    END IF;
    RETURN v_freed;
END
$$;

-- Takes back tasks whose lease ran out, of one queue or of all, oldest
-- deadline first. p_held: how long ago this process last distrusted the clock
-- (null: never); leases whose heartbeat is longer are left alone. Tells how many
-- tasks went back or failed, and which failed (null: none): no settlement did
-- it, so whoever noticed has to tell.
CREATE FUNCTION gristmill.expire(
    p_queue integer, p_leases integer, p_held bigint, p_kept integer, p_now timestamptz,
    OUT taken bigint, OUT failed bigint[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    c_expired constant text := 'the lease ran out: the worker died, hung or lost the store';
    v_lease gristmill.lease;
    v_queue gristmill.queue;
    v_task  gristmill.task;
    v_next  gristmill.next;
BEGIN
    taken := 0;
    FOR v_lease IN
        -- The guarded statement: whoever settles or extends holds the row, and
        -- then it is passed over or looked at again.
        DELETE FROM gristmill.lease l
         WHERE l.ctid = ANY (ARRAY(
                   SELECT x.ctid
                     FROM gristmill.lease x JOIN gristmill.queue q ON q.number = x.queue
                    WHERE (p_queue IS NULL OR x.queue = p_queue) AND x.until <= p_now
                      AND (p_held IS NULL OR gristmill.span(p_held) >= q.lease / 3)
                    ORDER BY x.until, x.token
                    LIMIT p_leases
                      FOR UPDATE OF x SKIP LOCKED))
        RETURNING l.*
    LOOP
        SELECT * INTO v_queue FROM gristmill.queue q WHERE q.number = v_lease.queue;
        FOREACH v_task IN ARRAY v_lease.tasks LOOP
            CONTINUE WHEN v_task.id <> ALL (v_lease.open);
            v_task.attempts := v_task.attempts + 1;
            v_task.claims := v_task.claims + 1;
            v_task.claimed_at := v_lease.claimed_at;
            v_next := gristmill.after_attempt(v_task, v_queue, 'expired', c_expired, NULL, false,
                v_task.id = ANY (v_lease.cancelled), 0, p_now);
            v_task.error := c_expired;
            v_task.history := gristmill.told(v_task.history, v_lease.worker, v_lease.claimed_at,
                p_now, 'expired', c_expired, p_kept);
            PERFORM gristmill.end_attempt(v_queue, v_task, v_next, p_now);
            taken := taken + 1;
            IF v_next.kind = 'failed' THEN
                failed := failed || v_task.id;
            END IF;
        END LOOP;
        INSERT INTO gristmill.delta (at, queue, expired)
        VALUES (p_now, v_lease.queue, cardinality(v_lease.open));
    END LOOP;
END
$$;
