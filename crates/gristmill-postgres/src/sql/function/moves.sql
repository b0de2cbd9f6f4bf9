-- The moves everything else is made of: a task enters the claim order, frees
-- its key, is kept. Each appends its own counts.

-- Tasks that waited behind these keys enter the claim order. A task that was
-- put but not committed meanwhile is missed here, and one that an open
-- transaction replaces is passed by, not waited for; the sweep finds both.
CREATE FUNCTION gristmill.unblock(p_queue integer, p_keys text[], p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_entered integer;
BEGIN
    WITH entered AS (
        UPDATE gristmill.task t SET blocked = false, delayed = t.run_at > p_now
         WHERE t.ctid = ANY (ARRAY(
                   SELECT x.ctid FROM gristmill.task x
                    WHERE x.queue = p_queue AND x.key = ANY (p_keys) AND x.blocked
                      FOR UPDATE SKIP LOCKED))
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

-- Frees the in-flight place of keys; returns how many tasks waited behind. With
-- p_active, markers that were left beside the tasks in flight go along: this
-- settlement comes after them.
CREATE FUNCTION gristmill.free_keys(
    p_queue integer, p_keys text[], p_active boolean, p_now timestamptz
) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    IF p_active THEN
        PERFORM gristmill.take_markers(p_queue, p_keys, true);
    END IF;
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

-- What tasks that are over had kept goes with them.
CREATE FUNCTION gristmill.forget_kept(p_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM gristmill.checkpoint c WHERE c.id = ANY (p_ids);
END
$$;

-- Tasks that failed or were taken away: the windows of their keys end. One of a later put
-- stays, and so does one that an open transaction puts anew: it was over.
CREATE FUNCTION gristmill.end_windows(p_queue integer, p_keys text[], p_ids bigint[])
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM gristmill.key_window w
     WHERE w.ctid = ANY (ARRAY(
               SELECT x.ctid
                 FROM unnest(p_keys, p_ids) AS e (key, id)
                 JOIN gristmill.key_window x
                   ON x.queue = p_queue AND x.key = e.key AND x.task = e.id
                  FOR UPDATE OF x SKIP LOCKED));
END
$$;

-- The line that an ended attempt gets in its task's history, as a list of one.
CREATE FUNCTION gristmill.history_entry(
    p_worker text, p_began timestamptz, p_outcome text, p_error text, p_now timestamptz
) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
        'worker', p_worker, 'claimed_at', least(p_began, p_now), 'ended_at', p_now,
        'end', p_outcome, 'error', p_error)))
$$;

-- Ends attempts, as many as there are, in a few statements: each task is done,
-- cancelled, failed or goes back, as after_attempt says. The leases are the
-- caller's. All arrays have one entry a task.
--   p_tasks      as they were before the claim
--   p_tokens     of their leases; remembered as what settled them, unless it expired
--   p_positions  what the answers name them by
-- One row a queue; is_woken says that something of it may be claimable now, and
-- is_freed that it is something that waited, from wherever in the order.
CREATE FUNCTION gristmill.end_attempts(
    p_tasks gristmill.held[], p_tokens uuid[], p_workers text[], p_begans timestamptz[],
    p_cancels boolean[], p_positions integer[], p_outcomes text[], p_errors text[],
    p_ats timestamptz[], p_started boolean[], p_free integer, p_kept integer, p_now timestamptz
) RETURNS TABLE (
    queue integer, positions integer[], became smallint[], run_ats timestamptz[],
    failed bigint[], is_woken boolean, is_freed boolean
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_some    record;
    v_last    record;
    v_entry   jsonb;
    v_entries jsonb[];
BEGIN
    -- The line that each attempt gets in its task's history. Neighbours mostly
    -- have the same, and making one costs as much as storing a task.
    IF p_workers[1] = ALL (p_workers) AND p_begans[1] = ALL (p_begans)
       AND p_outcomes[1] = ALL (p_outcomes)
       AND (p_errors[1] = ALL (p_errors) OR array_remove(p_errors, NULL) = '{}') THEN
        v_entries := array_fill(gristmill.history_entry(p_workers[1], p_begans[1],
            p_outcomes[1], p_errors[1], p_now), ARRAY[cardinality(p_tasks)]);
    ELSE
        FOR v_some IN
            SELECT u.worker, u.began, u.outcome, u.error
              FROM unnest(p_workers, p_begans, p_outcomes, p_errors)
                   WITH ORDINALITY AS u (worker, began, outcome, error, nth) ORDER BY u.nth
        LOOP
            IF v_entry IS NULL OR v_last IS DISTINCT FROM v_some THEN
                v_entry := gristmill.history_entry(v_some.worker, v_some.began, v_some.outcome,
                    v_some.error, p_now);
                v_last := v_some;
            END IF;
            v_entries := v_entries || v_entry;
        END LOOP;
    END IF;
    FOR v_some IN
        WITH ended AS MATERIALIZED (
            SELECT t.id, t.created_at, t.run_at, t.queue, t.attempts + 1 AS attempts,
                   t.claims + 1 AS claims, t.expiries, t.started_releases, t.priority, t.encoding,
                   t.unique_active, t.key, t.grp, t.source, t.headers, t.settings, t.payload,
                   t.prev_run_at, t.began AS claimed_at,
                   CASE WHEN t.outcome = 'expired' THEN t.settled ELSE t.token END AS settled,
                   t.note, t.note_by, t.position, t.outcome,
                   n.became, n.run_at AS next_run_at, n.prev_run_at AS next_prev_run_at,
                   n.attempts AS next_attempts, n.expiries AS next_expiries,
                   n.started_releases AS next_releases, n.released, n.error AS last_error,
                   coalesce(t.said, t.error) AS error,
                   q.grouped AS slotted, q.frees, t.started,
                   q.rate_tasks IS NOT NULL AS is_rated, q.rate_per_group, q.keep_done IS NOT NULL AS is_kept,
                   q.unique_active AS is_active,
                   q.unique_for IS NOT NULL AND t.key IS NOT NULL AND n.became IN (2, 3)
                       AS ends_window,
                   -- One more attempt at the end: the last ten. A history that
                   -- cannot be one is left behind.
                   CASE WHEN jsonb_typeof(t.history) = 'array'
                             AND jsonb_array_length(t.history) >= p_kept
                        THEN jsonb_path_query_array(t.history, '$[$from to last]',
                                 jsonb_build_object('from',
                                     jsonb_array_length(t.history) - p_kept + 1))
                        WHEN jsonb_typeof(t.history) = 'array' THEN t.history
                        ELSE '[]' END
                   || t.entry AS history
              FROM unnest(p_tasks, p_tokens, p_begans, p_cancels, p_positions, p_outcomes,
                          p_errors, p_ats, p_started, v_entries)
                AS t (id, created_at, run_at, queue, attempts, claims, expiries,
                      started_releases, priority, encoding, unique_active, key, grp, source,
                      headers, settings, payload, prev_run_at, claimed_at, settled, error, history,
                      note, note_by, token, began, cancel, position, outcome, said, at, started, entry)
              JOIN gristmill.queue q ON q.number = t.queue
             CROSS JOIN LATERAL gristmill.after_attempt(t.outcome, t.said, t.at, t.started,
                       t.cancel, t.id, t.attempts + 1, t.claims + 1, t.expiries,
                       t.started_releases, t.run_at, t.prev_run_at,
                       CASE WHEN t.settings IS NULL THEN q.max_attempts
                            ELSE gristmill.own_attempts(t.settings, q.max_attempts) END,
                       CASE WHEN t.settings IS NULL THEN q.backoff_base
                            ELSE gristmill.own_number(t.settings, '{backoff,base}', 0,
                                     q.backoff_base) END,
                       CASE WHEN t.settings IS NULL THEN q.backoff_cap
                            ELSE gristmill.own_number(t.settings, '{backoff,cap}', 0,
                                     q.backoff_cap) END,
                       CASE WHEN jsonb_typeof(t.settings #> '{backoff,jitter}') = 'boolean'
                            THEN (t.settings #> '{backoff,jitter}')::boolean
                            ELSE q.backoff_jitter END, p_free, p_now) n
        ), back AS (
            -- A task that goes back keeps its key's in-flight place.
            INSERT INTO gristmill.task (id, created_at, run_at, queue, attempts, claims, expiries,
                started_releases, priority, encoding, in_flight, delayed, slotted, unique_active,
                key, grp, source, headers, settings, payload, prev_run_at, claimed_at, settled,
                error, history, note, note_by)
            SELECT e.id, e.created_at, e.next_run_at, e.queue, e.next_attempts, e.claims,
                   e.next_expiries, e.next_releases, e.priority, e.encoding, true,
                   e.next_run_at > p_now, e.slotted, e.unique_active, e.key, e.grp, e.source, e.headers,
                   e.settings, e.payload,
                   e.next_prev_run_at, e.claimed_at, e.settled, e.error, e.history, e.note,
                   e.note_by
              FROM ended e WHERE e.became = 1
        ), waiting AS (
            INSERT INTO gristmill.delayed (run_at, id, queue)
            SELECT e.next_run_at, e.id, e.queue FROM ended e
             WHERE e.became = 1 AND e.next_run_at > p_now
        ), lost AS (
            INSERT INTO gristmill.failed (id, created_at, run_at, queue, attempts, claims,
                expiries, started_releases, priority, encoding, unique_active, key, grp, source,
                headers, settings, payload, prev_run_at, claimed_at, settled, error, history, note,
                note_by,
                failed_at)
            SELECT e.id, e.created_at, e.run_at, e.queue, e.attempts, e.claims, e.expiries,
                   e.started_releases, e.priority, e.encoding, e.unique_active, e.key, e.grp,
                   e.source, e.headers, e.settings, e.payload, e.prev_run_at, e.claimed_at, e.settled,
                   e.last_error, e.history, e.note, e.note_by, p_now
              FROM ended e WHERE e.became = 2
        ), kept AS (
            INSERT INTO gristmill.done (id, created_at, run_at, queue, attempts, claims,
                expiries, started_releases, priority, encoding, unique_active, key, grp, source,
                headers, settings, payload, prev_run_at, claimed_at, settled, error, history, note,
                note_by,
                resolved_at)
            SELECT e.id, e.created_at, e.run_at, e.queue, e.attempts, e.claims, e.expiries,
                   e.started_releases, e.priority, e.encoding, e.unique_active, e.key, e.grp,
                   e.source, e.headers, e.settings, e.payload, e.prev_run_at, e.claimed_at, e.settled,
                   e.error, e.history, e.note, e.note_by, p_now
              FROM ended e WHERE e.became = 0 AND e.is_kept
        ), returned AS (
            INSERT INTO gristmill.refund (queue, grp)
            SELECT e.queue, CASE WHEN e.rate_per_group THEN coalesce(e.grp, '') ELSE '' END
              FROM ended e
             WHERE e.is_rated AND e.outcome = 'release' AND NOT e.started AND e.became = 1
        ), counted AS (
            INSERT INTO gristmill.delta (at, queue, ready, delayed, processing, failed_now,
                done_kept, done, retried, failed, released, expired, cancelled)
            SELECT p_now, e.queue, count(*) FILTER (WHERE e.became = 1 AND e.next_run_at <= p_now),
                   count(*) FILTER (WHERE e.became = 1 AND e.next_run_at > p_now), -count(*),
                   count(*) FILTER (WHERE e.became = 2),
                   count(*) FILTER (WHERE e.became = 0 AND e.is_kept),
                   count(*) FILTER (WHERE e.became = 0),
                   count(*) FILTER (WHERE e.became = 1 AND NOT e.released
                                      AND e.outcome <> 'expired'),
                   count(*) FILTER (WHERE e.became = 2),
                   count(*) FILTER (WHERE e.became = 1 AND e.released),
                   count(*) FILTER (WHERE e.outcome = 'expired'),
                   count(*) FILTER (WHERE e.became = 3)
              FROM ended e GROUP BY e.queue
        )
        SELECT e.queue, bool_or(e.is_active) AS is_active,
               bool_or(e.became = 1 OR e.frees) AS is_woken,
               array_agg(e.key::text) FILTER (WHERE e.became <> 1 AND e.key IS NOT NULL)
                   AS freed,
               array_agg(e.key::text) FILTER (WHERE e.ends_window) AS window_keys,
               array_agg(e.id) FILTER (WHERE e.ends_window) AS window_ids,
               array_agg(e.position) AS positions,
               array_agg(e.became) AS became,
               array_agg(CASE WHEN e.became = 1 THEN e.next_run_at END) AS run_ats,
               array_agg(e.id) FILTER (WHERE e.became = 0) AS done,
               array_agg(e.id) FILTER (WHERE e.became = 3) AS cancelled,
               array_agg(e.id) FILTER (WHERE e.became = 2) AS failed,
               array_agg(e.id) FILTER (WHERE e.became IN (0, 3)) AS over
          FROM ended e GROUP BY e.queue
    LOOP
        queue := v_some.queue;
        positions := v_some.positions;
        became := v_some.became;
        run_ats := v_some.run_ats;
        failed := v_some.failed;
        is_freed := v_some.freed IS NOT NULL
            AND gristmill.free_keys(queue, v_some.freed, v_some.is_active, p_now) > 0;
        is_woken := v_some.is_woken OR is_freed;
        IF v_some.window_ids IS NOT NULL THEN
            PERFORM gristmill.end_windows(queue, v_some.window_keys, v_some.window_ids);
        END IF;
        IF v_some.over IS NOT NULL THEN
            PERFORM gristmill.forget_kept(v_some.over);
        END IF;
        IF v_some.done IS NOT NULL THEN
            PERFORM gristmill.end_done(queue, v_some.done, p_now);
        END IF;
        IF v_some.cancelled IS NOT NULL THEN
            PERFORM gristmill.end_wanted(v_some.cancelled, 'cancelled', NULL, p_now);
        END IF;
        -- What came of these they tell themselves, as long as they stand.
        IF EXISTS (SELECT 1 FROM gristmill.wanted w WHERE w.id = ANY (failed)) THEN
            PERFORM pg_notify('gristmill.wake', '#');
        END IF;
        RETURN NEXT;
    END LOOP;
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
    v_ended   uuid[];
    v_lease   record;
    v_task    gristmill.held;
    v_tasks   gristmill.held[];
    v_tokens  uuid[];
    v_workers text[];
    v_begans  timestamptz[];
    v_cancels boolean[];
    v_some    record;
BEGIN
    taken := 0;
    -- Whoever extends holds the deadline, and then it is passed over.
    IF p_queue IS NULL THEN
        v_ended := ARRAY(
            SELECT d.token
              FROM gristmill.queue q
             CROSS JOIN LATERAL (
                   SELECT x.token, x.until FROM gristmill.deadline x
                    WHERE x.queue = q.number AND x.until <= p_now
                      AND (p_held IS NULL OR gristmill.span(p_held) >= x.lease / 3)
                    ORDER BY x.until LIMIT p_leases FOR UPDATE SKIP LOCKED) d
             ORDER BY d.until LIMIT p_leases);
    ELSE
        v_ended := ARRAY(
            SELECT x.token FROM gristmill.deadline x
             WHERE x.queue = p_queue AND x.until <= p_now
               AND (p_held IS NULL OR gristmill.span(p_held) >= x.lease / 3)
             ORDER BY x.until LIMIT p_leases FOR UPDATE SKIP LOCKED);
    END IF;
    IF v_ended = '{}' THEN
        RETURN;
    END IF;
    -- The guarded statement: whoever settles holds the lease, and then it is left
    -- to him.
    FOR v_lease IN
        DELETE FROM gristmill.lease l
         WHERE l.ctid = ANY (ARRAY(SELECT x.ctid FROM gristmill.lease x
                                    WHERE x.token = ANY (v_ended)
                                    ORDER BY x.token FOR UPDATE SKIP LOCKED))
        RETURNING l.token, l.worker, l.claimed_at, l.cancelled, l.open, l.tasks
    LOOP
        FOREACH v_task IN ARRAY v_lease.tasks LOOP
            CONTINUE WHEN v_task.id <> ALL (v_lease.open);
            v_tasks := v_tasks || v_task;
            v_tokens := v_tokens || v_lease.token;
            v_workers := v_workers || v_lease.worker;
            v_begans := v_begans || v_lease.claimed_at;
            v_cancels := v_cancels || coalesce(v_task.id = ANY (v_lease.cancelled), false);
            taken := taken + 1;
        END LOOP;
    END LOOP;
    -- Also of those whose lease a completion under an old snapshot left without.
    DELETE FROM gristmill.deadline d
     WHERE d.token = ANY (v_ended)
       AND (SELECT l.token FROM gristmill.lease l WHERE l.token = d.token) IS NULL;
    IF taken = 0 THEN
        RETURN;
    END IF;
    FOR v_some IN
        SELECT e.failed FROM gristmill.end_attempts(v_tasks, v_tokens, v_workers, v_begans,
            v_cancels, NULL, array_fill('expired'::text, ARRAY[taken::integer]),
            array_fill(c_expired, ARRAY[taken::integer]), NULL,
            array_fill(false, ARRAY[taken::integer]), 0, p_kept, p_now) e
    LOOP
        failed := failed || v_some.failed;
    END LOOP;
END
$$;
