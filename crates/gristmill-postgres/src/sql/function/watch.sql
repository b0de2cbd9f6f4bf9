-- Reading, operators' actions, and what time brings.

-- Every task as programs read it; people have `tasks` (operators.sql). The
-- token is left out: whoever reads it could settle in the holder's name.
CREATE VIEW gristmill.shown AS
SELECT 'pending' AS state, t.id, t.queue, t.key, t.grp, t.source, t.priority, t.run_at,
       t.created_at, t.blocked, t.in_flight, t.unique_active, t.attempts, t.claims, t.expiries,
       t.encoding, t.prev_run_at, t.claimed_at, t.error, t.history, t.note, t.note_by,
       t.failed_at, t.resolved_by, t.resolved_at, t.headers, t.settings, t.payload,
       NULL::text AS worker, NULL::timestamptz AS until, NULL::integer AS slot,
       false AS cancel_requested, NULL::jsonb AS progress
  FROM gristmill.task t
UNION ALL
SELECT 'processing', t.id, t.queue, t.key, t.grp, t.source, t.priority, t.run_at,
       t.created_at, false, true, t.unique_active, t.attempts + 1, t.claims + 1, t.expiries,
       t.encoding, t.prev_run_at, l.claimed_at, t.error, t.history, t.note, t.note_by,
       NULL, NULL, NULL, t.headers, t.settings, t.payload,
       l.worker, d.until, l.slot, coalesce(t.id = ANY (l.cancelled), false),
       d.progress -> t.id::text
  FROM gristmill.lease l JOIN gristmill.deadline d ON d.token = l.token, unnest(l.tasks) t
 WHERE t.id = ANY (l.open)
UNION ALL
SELECT 'failed', t.id, t.queue, t.key, t.grp, t.source, t.priority, t.run_at,
       t.created_at, false, false, t.unique_active, t.attempts, t.claims, t.expiries,
       t.encoding, t.prev_run_at, t.claimed_at, t.error, t.history, t.note, t.note_by,
       t.failed_at, t.resolved_by, t.resolved_at, t.headers, t.settings, t.payload,
       NULL, NULL, NULL, false, NULL
  FROM gristmill.failed t
UNION ALL
SELECT 'done', t.id, t.queue, t.key, t.grp, t.source, t.priority, t.run_at,
       t.created_at, false, false, t.unique_active, t.attempts, t.claims, t.expiries,
       t.encoding, t.prev_run_at, t.claimed_at, t.error, t.history, t.note, t.note_by,
       t.failed_at, t.resolved_by, t.resolved_at, t.headers, t.settings, t.payload,
       NULL, NULL, NULL, false, NULL
  FROM gristmill.done t;

-- Where a task stands, and by which token it was last settled.
CREATE FUNCTION gristmill.standing(p_id bigint)
RETURNS TABLE (state text, queue integer, settled uuid)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT 'pending', t.queue, t.settled FROM gristmill.task t WHERE t.id = p_id
    UNION ALL
    SELECT 'processing', t.queue, t.settled FROM gristmill.lease l, unnest(l.tasks) t
     WHERE p_id = ANY (l.open) AND t.id = p_id
    UNION ALL
    SELECT 'failed', t.queue, t.settled FROM gristmill.failed t WHERE t.id = p_id
    UNION ALL
    SELECT 'done', t.queue, t.settled FROM gristmill.done t WHERE t.id = p_id;
END
$$;

-- One step of an operator's action on one task: moved, cancel_requested,
-- duplicate (of `other`), wrong_state (`state`), gone, or held: somebody's open
-- transaction has changed it, and nobody waits for that.
CREATE FUNCTION gristmill.operate_one(
    p_action text, p_id bigint, p_by text, p_note text, p_now timestamptz,
    p_start timestamptz DEFAULT NULL,
    OUT answer text, OUT other bigint, OUT state text, OUT woken integer
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off SET lock_timeout = '200ms'
AS $$
DECLARE
    v_now record;
BEGIN
    -- A task that moved between two looks is looked for again.
    FOR v_try IN 1..10 LOOP
        SELECT * INTO v_now FROM gristmill.operate_now(p_action, p_id, p_by, p_note, p_now,
            greatest(p_start, p_now));
        EXIT WHEN v_now.answer IS NOT NULL;
    END LOOP;
    answer := coalesce(v_now.answer, 'held');
    other := v_now.other;
    state := v_now.state;
    woken := v_now.woken;
EXCEPTION WHEN lock_not_available THEN
    answer := 'held';
END
$$;

-- One try at it, which waits as long as lock_timeout says; no answer when the
-- task moved meanwhile.
CREATE FUNCTION gristmill.operate_now(
    p_action text, p_id bigint, p_by text, p_note text, p_now timestamptz, p_start timestamptz,
    OUT answer text, OUT other bigint, OUT state text, OUT woken integer
)
LANGUAGE plpgsql AS $$
DECLARE
    v_task  gristmill.task;
    v_queue gristmill.queue;
    v_lease record;
    v_tasks gristmill.held[];
BEGIN
    IF p_action = 'cancel' THEN
        SELECT * INTO v_task FROM gristmill.task t WHERE t.id = p_id FOR UPDATE;
        IF FOUND THEN
            PERFORM gristmill.count_out(v_task, p_now);
            DELETE FROM gristmill.task t WHERE t.id = p_id;
            PERFORM gristmill.forget_kept(ARRAY[p_id]);
            PERFORM gristmill.end_wanted(ARRAY[p_id], 'cancelled', NULL, p_now);
            INSERT INTO gristmill.delta (at, queue, cancelled) VALUES (p_now, v_task.queue, 1);
            IF v_task.key IS NOT NULL AND (SELECT q.unique_for FROM gristmill.queue q
                                            WHERE q.number = v_task.queue) IS NOT NULL THEN
                PERFORM gristmill.end_windows(v_task.queue, ARRAY[v_task.key], ARRAY[p_id]);
            END IF;
            IF v_task.in_flight AND v_task.key IS NOT NULL
               AND gristmill.free_keys(v_task.queue, ARRAY[v_task.key], true, p_now) > 0 THEN
                woken := v_task.queue;
            END IF;
            -- What was answered as its duplicate is cancelled with it. Of one that
            -- waits behind a task in flight too: that task's end is still to come.
            IF NOT v_task.in_flight AND v_task.key IS NOT NULL THEN
                PERFORM gristmill.take_markers(v_task.queue, ARRAY[v_task.key], false);
            END IF;
            answer := 'moved';
            RETURN;
        END IF;
        SELECT l.token, l.tasks, l.cancelled INTO v_lease FROM gristmill.lease l
         WHERE p_id = ANY (l.open) FOR UPDATE;
        IF FOUND THEN
            v_tasks := v_lease.tasks;
            FOR i IN 1..cardinality(v_tasks) LOOP
                IF v_tasks[i].id = p_id AND p_note IS NOT NULL THEN
                    v_tasks[i].note := p_note;
                    v_tasks[i].note_by := p_by;
                    UPDATE gristmill.lease l SET tasks = v_tasks WHERE l.token = v_lease.token;
                END IF;
            END LOOP;
            UPDATE gristmill.lease l SET cancelled = array_append(l.cancelled, p_id)
             WHERE l.token = v_lease.token AND p_id <> ALL (coalesce(l.cancelled, '{}'));
            answer := 'cancel_requested';
            RETURN;
        END IF;
    ELSE
        SELECT * INTO v_task FROM gristmill.failed t WHERE t.id = p_id FOR UPDATE;
        IF FOUND THEN
            SELECT * INTO v_queue FROM gristmill.queue q WHERE q.number = v_task.queue;
            v_task.note := coalesce(p_note, v_task.note);
            v_task.note_by := CASE WHEN p_note IS NULL THEN v_task.note_by ELSE p_by END;
            IF p_action IN ('retry', 'retry_fresh') THEN
                other := gristmill.stand_again(v_task, v_queue, p_start, p_now);
                IF other IS NOT NULL THEN
                    answer := 'duplicate';
                    RETURN;
                END IF;
                woken := v_task.queue;
                INSERT INTO gristmill.delta (at, queue, failed_now, operator_retried)
                VALUES (p_now, v_task.queue, -1, 1);
            ELSIF p_action = 'discard' THEN
                PERFORM gristmill.end_wanted(ARRAY[p_id], 'discarded', NULL, p_now);
                IF v_queue.unique_for IS NOT NULL AND v_task.key IS NOT NULL THEN
                    PERFORM gristmill.end_windows(v_task.queue, ARRAY[v_task.key], ARRAY[p_id]);
                END IF;
                INSERT INTO gristmill.delta (at, queue, failed_now, discarded)
                VALUES (p_now, v_task.queue, -1, 1);
            ELSE
                PERFORM gristmill.end_done(v_task.queue, ARRAY[p_id], p_now);
                IF v_queue.keep_done IS NOT NULL THEN
                    v_task.resolved_by := p_by;
                    v_task.resolved_at := p_now;
                    INSERT INTO gristmill.done VALUES (v_task.*);
                END IF;
                INSERT INTO gristmill.delta (at, queue, failed_now, resolved, done_kept)
                VALUES (p_now, v_task.queue, -1, 1, (v_queue.keep_done IS NOT NULL)::integer);
            END IF;
            DELETE FROM gristmill.failed t WHERE t.id = p_id;
            IF p_action <> 'retry' THEN
                PERFORM gristmill.forget_kept(ARRAY[p_id]);
            END IF;
            answer := 'moved';
            RETURN;
        END IF;
    END IF;
    SELECT s.state INTO state FROM gristmill.standing(p_id) s;
    IF NOT coalesce(CASE p_action WHEN 'cancel' THEN state IN ('pending', 'processing')
                                  ELSE state = 'failed' END, false) THEN
        answer := CASE WHEN state IS NULL THEN 'gone' ELSE 'wrong_state' END;
    END IF;
END
$$;

-- A failed task takes its key's waiting place, as if put anew to run from p_start on; or
-- returns the task that holds it.
CREATE FUNCTION gristmill.stand_again(
    p_task gristmill.task, p_queue gristmill.queue, p_start timestamptz, p_now timestamptz
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_task   gristmill.task := p_task;
    v_flight bigint;
    v_other  bigint;
BEGIN
    v_task.attempts := 0;
    v_task.expiries := 0;
    v_task.started_releases := 0;
    v_task.prev_run_at := v_task.run_at;
    v_task.run_at := p_start;
    v_task.failed_at := NULL;
    v_task.resolved_by := NULL;
    v_task.resolved_at := NULL;
    v_task.in_flight := false;
    v_task.slotted := p_queue.grouped;
    LOOP
        v_flight := (SELECT f.id FROM gristmill.flight f
                      WHERE f.queue = v_task.queue AND f.key = v_task.key);
        v_other := (SELECT t.id FROM gristmill.task t
                     WHERE t.queue = v_task.queue AND t.key = v_task.key AND NOT t.in_flight);
        IF v_other IS NOT NULL THEN
            RETURN v_other;
        ELSIF v_task.unique_active AND v_flight IS NOT NULL THEN
            RETURN v_flight;
        END IF;
        v_task.blocked := v_flight IS NOT NULL;
        v_task.delayed := p_start > p_now AND NOT v_task.blocked;
        INSERT INTO gristmill.task VALUES (v_task.*)
        ON CONFLICT (queue, key) WHERE key IS NOT NULL AND NOT in_flight DO NOTHING;
        CONTINUE WHEN NOT FOUND;
        IF v_task.key IS NOT NULL AND v_task.unique_active
           AND gristmill.in_flight(v_task.queue, v_task.key) THEN
            DELETE FROM gristmill.task t WHERE t.id = v_task.id;
            CONTINUE;
        END IF;
        EXIT;
    END LOOP;
    IF v_task.delayed THEN
        INSERT INTO gristmill.delayed (run_at, id, queue) VALUES (v_task.run_at, v_task.id, v_task.queue);
    END IF;
    INSERT INTO gristmill.delta (at, queue, ready, delayed, blocked)
    VALUES (p_now, v_task.queue, (NOT v_task.blocked AND NOT v_task.delayed)::integer,
            v_task.delayed::integer, v_task.blocked::integer);
    RETURN NULL;
END
$$;

-- Adds appended counts to the kept ones, so many at most. One at a time. What an
-- SQL client's claim sums up in a transaction that is still open (maintain.sql)
-- is passed by.
CREATE FUNCTION gristmill.fold(p_limit integer DEFAULT 20000) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_folded bigint;
BEGIN
    IF NOT gristmill.my_turn('fold') THEN
        RETURN 0;
    END IF;
    WITH gone AS (
        DELETE FROM gristmill.delta d
         WHERE d.ctid = ANY (ARRAY(SELECT x.ctid FROM gristmill.delta x LIMIT p_limit
                                      FOR UPDATE SKIP LOCKED))
        RETURNING d.*
    ), summed AS (
        UPDATE gristmill.total t SET
            ready = t.ready + s.ready, delayed = t.delayed + s.delayed,
            blocked = t.blocked + s.blocked, processing = t.processing + s.processing,
            failed_now = t.failed_now + s.failed_now, done_kept = t.done_kept + s.done_kept,
            put = t.put + s.put, duplicate = t.duplicate + s.duplicate,
            replaced = t.replaced + s.replaced, refused = t.refused + s.refused,
            claimed = t.claimed + s.claimed, done = t.done + s.done,
            retried = t.retried + s.retried, failed = t.failed + s.failed,
            released = t.released + s.released, expired = t.expired + s.expired,
            lease_lost = t.lease_lost + s.lease_lost, cancelled = t.cancelled + s.cancelled,
            discarded = t.discarded + s.discarded, resolved = t.resolved + s.resolved,
            operator_retried = t.operator_retried + s.operator_retried,
            subject_gone = t.subject_gone + s.subject_gone
          FROM (SELECT g.queue, coalesce(sum(g.ready), 0) AS ready,
                       coalesce(sum(g.delayed), 0) AS delayed,
                       coalesce(sum(g.blocked), 0) AS blocked,
                       coalesce(sum(g.processing), 0) AS processing,
                       coalesce(sum(g.failed_now), 0) AS failed_now,
                       coalesce(sum(g.done_kept), 0) AS done_kept,
                       coalesce(sum(g.put), 0) AS put, coalesce(sum(g.duplicate), 0) AS duplicate,
                       coalesce(sum(g.replaced), 0) AS replaced,
                       coalesce(sum(g.refused), 0) AS refused,
                       coalesce(sum(g.claimed), 0) AS claimed, coalesce(sum(g.done), 0) AS done,
                       coalesce(sum(g.retried), 0) AS retried,
                       coalesce(sum(g.failed), 0) AS failed,
                       coalesce(sum(g.released), 0) AS released,
                       coalesce(sum(g.expired), 0) AS expired,
                       coalesce(sum(g.lease_lost), 0) AS lease_lost,
                       coalesce(sum(g.cancelled), 0) AS cancelled,
                       coalesce(sum(g.discarded), 0) AS discarded,
                       coalesce(sum(g.resolved), 0) AS resolved,
                       coalesce(sum(g.operator_retried), 0) AS operator_retried,
                       coalesce(sum(g.subject_gone), 0) AS subject_gone
                  FROM gone g GROUP BY g.queue) s
         WHERE t.queue = s.queue
    ), minutes AS (
        INSERT INTO gristmill.minute AS m (queue, at, put, done, failed, waits)
        SELECT g.queue, date_trunc('minute', g.at), coalesce(sum(g.put), 0),
               coalesce(sum(g.done), 0), coalesce(sum(g.failed), 0),
               CASE WHEN sum(g.waits[1]) IS NOT NULL THEN
                   ARRAY[sum(g.waits[1]), sum(g.waits[2]), sum(g.waits[3]), sum(g.waits[4]),
                         sum(g.waits[5]), sum(g.waits[6]), sum(g.waits[7])] END
          FROM gone g
         WHERE g.put > 0 OR g.done > 0 OR g.failed > 0 OR g.waits IS NOT NULL
         GROUP BY g.queue, date_trunc('minute', g.at)
        ON CONFLICT (queue, at) DO UPDATE
           SET put = m.put + excluded.put, done = m.done + excluded.done,
               failed = m.failed + excluded.failed,
               waits = CASE
                   WHEN m.waits IS NULL OR excluded.waits IS NULL
                   THEN coalesce(m.waits, excluded.waits)
                   ELSE ARRAY[m.waits[1] + excluded.waits[1], m.waits[2] + excluded.waits[2], m.waits[3] + excluded.waits[3],
                              m.waits[4] + excluded.waits[4], m.waits[5] + excluded.waits[5],
                              m.waits[6] + excluded.waits[6], m.waits[7] + excluded.waits[7]] END
    )
    SELECT count(*) INTO v_folded FROM gone;
    RETURN v_folded;
END
$$;

-- Counts tasks that fell due as ready.
CREATE FUNCTION gristmill.promote(p_limit integer, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_promoted bigint;
BEGIN
    WITH due AS (
        DELETE FROM gristmill.delayed d
         WHERE d.ctid = ANY (ARRAY(
                   SELECT x.ctid FROM gristmill.delayed x WHERE x.run_at <= p_now
                    ORDER BY x.run_at, x.id LIMIT p_limit FOR UPDATE SKIP LOCKED))
        RETURNING d.queue
    ), counted AS (
        INSERT INTO gristmill.delta (at, queue, ready, delayed)
        SELECT p_now, d.queue, count(*), -count(*) FROM due d GROUP BY d.queue
    )
    SELECT count(*) INTO v_promoted FROM due;
    RETURN v_promoted;
END
$$;

-- The first due tasks of some levels at or before the places where claims go on:
-- committed late, or come back. Takes nothing and locks nothing, so it may walk
-- over what is dead there without holding a claim up.
CREATE FUNCTION gristmill.behind(
    p_queue text, p_levels smallint[], p_run_ats timestamptz[], p_ids bigint[], p_now timestamptz
) RETURNS TABLE (level smallint, run_at timestamptz, id bigint)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
#variable_conflict use_column
DECLARE
    v_now    timestamptz := coalesce(p_now, clock_timestamp());
    v_number integer;
BEGIN
    SELECT q.number INTO v_number FROM gristmill.queue q WHERE q.name = p_queue;
    FOR i IN 1..cardinality(p_levels) LOOP
        RETURN QUERY
        SELECT t.priority, t.run_at, t.id FROM gristmill.task t
         WHERE t.queue = v_number AND NOT t.blocked AND t.priority = p_levels[i]
           AND t.run_at <= v_now AND (t.run_at, t.id) <= (p_run_ats[i], p_ids[i])
         ORDER BY t.run_at, t.id LIMIT 1;
    END LOOP;
END
$$;

-- For how many microseconds the oldest transaction is open that keeps dead rows
-- from being removed. Of other roles' sessions only who may read all statistics
-- sees that.
CREATE FUNCTION gristmill.oldest_transaction(p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT greatest(coalesce(extract(epoch FROM p_now - min(x.began)), 0), 0) * 1000000
              FROM (SELECT a.xact_start AS began FROM pg_stat_activity a
                     WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()
                       AND coalesce(a.backend_xmin, a.backend_xid) IS NOT NULL
                    UNION ALL
                    SELECT p.prepared FROM pg_prepared_xacts p) x);
END
$$;

-- What time brings is done in chores: bounded steps, each a statement and so a
-- transaction of its own, that one process at a time does. Only taking tasks back
-- from leases that ended is everybody's. A look at what is due comes first: where
-- nothing is, it is all that a process does.

-- Whether this transaction does the chore now; nobody else does until it ends,
-- also when it crashes, and also behind a pooler.
CREATE FUNCTION gristmill.my_turn(p_chore text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN pg_try_advisory_xact_lock('gristmill.chore'::regclass::oid::integer,
                                     hashtext(p_chore));
END
$$;

-- A process looks at least this often, whatever it has heard: longer than it is between
-- two polls, which make it look as well.
CREATE FUNCTION gristmill.longest_quiet() RETURNS interval
LANGUAGE sql IMMUTABLE AS $$
    SELECT interval '30 seconds'
$$;

-- How far back the minutes of queues are kept: a week unless a document says otherwise, in
-- whole seconds. The library reads it by the same rule (policy/keeping.rs).
CREATE FUNCTION gristmill.minutes_kept() RETURNS interval
LANGUAGE sql STABLE AS $$
    SELECT make_interval(secs => coalesce((
        SELECT CASE WHEN d.body ~ '^[0-9]{1,9}$'
                    THEN least(greatest(d.body::integer, 86400), 7776000) END
          FROM gristmill.document d WHERE d.kind = 'keep' AND d.name = 'minutes'), 604800))
$$;

-- Which chores have something to do, by a look at the front of an index each. Where
-- none has, quiet is for how many microseconds none will, unless something is put,
-- comes back or is delayed meanwhile, of which notices tell: not before a lease that
-- stands now runs out, or one that is taken from now on with its queue's length (of
-- shorter ones notices tell as well).
CREATE FUNCTION gristmill.due_chores(
    p_now timestamptz DEFAULT NULL, OUT chores text[], OUT oldest_transaction bigint,
    OUT now timestamptz, OUT quiet bigint
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_old timestamptz := date_trunc('minute', v_now - gristmill.minutes_kept());
BEGIN
    chores := ARRAY(SELECT c.name FROM (VALUES
        ('reclaim', EXISTS (
            SELECT 1 FROM gristmill.queue q
             WHERE (SELECT d.until FROM gristmill.deadline d
                     WHERE d.queue = q.number ORDER BY d.until LIMIT 1) <= v_now)),
        ('promote', (SELECT d.run_at FROM gristmill.delayed d
                      ORDER BY d.run_at LIMIT 1) <= v_now),
        ('unblock', (SELECT t.key FROM gristmill.task t
                      WHERE t.blocked ORDER BY t.key LIMIT 1) IS NOT NULL),
        ('markers', (SELECT m.id FROM gristmill.marker m ORDER BY m.id LIMIT 1) IS NOT NULL),
        ('subjects', (SELECT b.queue FROM gristmill.bound b LIMIT 1) IS NOT NULL),
        ('ids', least((SELECT i.until FROM gristmill.put_id i ORDER BY i.until LIMIT 1),
                      (SELECT w.until FROM gristmill.key_window w ORDER BY w.until LIMIT 1))
                <= v_now),
        ('done', EXISTS (
            SELECT 1 FROM gristmill.queue q
             WHERE (SELECT d.resolved_at FROM gristmill.done d
                     WHERE d.queue = q.number ORDER BY d.resolved_at LIMIT 1)
                   <= coalesce(v_now - q.keep_done, 'infinity'))),
        ('failed', EXISTS (
            SELECT 1 FROM gristmill.queue q
             WHERE q.keep_failed IS NOT NULL
               AND (SELECT d.failed_at FROM gristmill.failed d
                     WHERE d.queue = q.number ORDER BY d.failed_at LIMIT 1)
                   <= v_now - q.keep_failed)),
        ('endings', least((SELECT e.until FROM gristmill.ending e ORDER BY e.until LIMIT 1),
                          (SELECT w.until FROM gristmill.wanted w ORDER BY w.until LIMIT 1))
                    <= v_now),
        ('documents', EXISTS (
            SELECT 1 FROM gristmill.document d
             WHERE d.keep IS NOT NULL
               AND extract(epoch FROM v_now - d.changed_at) * 1000000 > d.keep)),
        ('fold', EXISTS (SELECT 1 FROM gristmill.delta)),
        -- After the fold, which may bring old ones.
        ('minutes', EXISTS (SELECT 1 FROM gristmill.delta) OR EXISTS (
            SELECT 1 FROM gristmill.queue q
             WHERE (SELECT m.at FROM gristmill.minute m
                     WHERE m.queue = q.number ORDER BY m.at LIMIT 1) < v_old)))
        AS c (name, is_due)
        WHERE c.is_due);
    IF chores = '{}' THEN
        quiet := extract(epoch FROM least(
            gristmill.longest_quiet(),
            (SELECT min(q.lease) FROM gristmill.queue q),
            (SELECT min((SELECT d.until FROM gristmill.deadline d
                          WHERE d.queue = q.number ORDER BY d.until LIMIT 1))
               FROM gristmill.queue q) - v_now,
            (SELECT d.run_at FROM gristmill.delayed d ORDER BY d.run_at LIMIT 1) - v_now))
            * 1000000;
    END IF;
    oldest_transaction := gristmill.oldest_transaction(v_now);
    now := v_now;
END
$$;

-- Forgets callers' ids whose time is over, and windows of keys, so many at most; tells
-- how many.
CREATE FUNCTION gristmill.forget_ids(p_limit integer, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_gone bigint;
    v_over bigint;
BEGIN
    DELETE FROM gristmill.put_id i
     WHERE i.ctid = ANY (ARRAY(SELECT x.ctid FROM gristmill.put_id x WHERE x.until <= p_now
                                ORDER BY x.until LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_gone = ROW_COUNT;
    DELETE FROM gristmill.key_window w
     WHERE w.ctid = ANY (ARRAY(SELECT x.ctid FROM gristmill.key_window x WHERE x.until <= p_now
                                ORDER BY x.until LIMIT p_limit - v_gone FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_over = ROW_COUNT;
    RETURN v_gone + v_over;
END
$$;

-- The same of done tasks that were kept long enough.
CREATE FUNCTION gristmill.forget_done(p_limit integer, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_queue record;
    v_step  bigint;
    v_gone  bigint := 0;
BEGIN
    FOR v_queue IN SELECT q.number, q.keep_done FROM gristmill.queue q LOOP
        DELETE FROM gristmill.done d
         WHERE d.ctid = ANY (ARRAY(
                   SELECT x.ctid FROM gristmill.done x
                    WHERE x.queue = v_queue.number
                      AND x.resolved_at <= coalesce(p_now - v_queue.keep_done, 'infinity')
                    ORDER BY x.resolved_at LIMIT p_limit - v_gone FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS v_step = ROW_COUNT;
        IF v_step > 0 THEN
            INSERT INTO gristmill.delta (at, queue, done_kept)
            VALUES (p_now, v_queue.number, -v_step);
            v_gone := v_gone + v_step;
        END IF;
    END LOOP;
    RETURN v_gone;
END
$$;

-- And of failed ones.
CREATE FUNCTION gristmill.forget_failed(p_limit integer, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_queue record;
    v_ids   bigint[];
    v_errors text[];
    v_step  bigint;
    v_gone  bigint := 0;
BEGIN
    FOR v_queue IN
        SELECT q.number, q.keep_failed FROM gristmill.queue q WHERE q.keep_failed IS NOT NULL
    LOOP
        WITH gone AS (
            DELETE FROM gristmill.failed d
             WHERE d.ctid = ANY (ARRAY(
                       SELECT x.ctid FROM gristmill.failed x
                        WHERE x.queue = v_queue.number
                          AND x.failed_at <= p_now - v_queue.keep_failed
                        ORDER BY x.failed_at LIMIT p_limit - v_gone FOR UPDATE SKIP LOCKED))
            RETURNING d.id, d.error
        )
        SELECT array_agg(g.id), array_agg(g.error), count(*) INTO v_ids, v_errors, v_step
          FROM gone g;
        IF v_step > 0 THEN
            PERFORM gristmill.end_wanted(ARRAY[u.id], 'failed', coalesce(u.error, ''), p_now)
               FROM unnest(v_ids, v_errors) AS u (id, error)
              WHERE EXISTS (SELECT 1 FROM gristmill.wanted w WHERE w.id = u.id);
            PERFORM gristmill.forget_kept(v_ids);
            INSERT INTO gristmill.delta (at, queue, failed_now, discarded)
            VALUES (p_now, v_queue.number, -v_step, v_step);
            v_gone := v_gone + v_step;
        END IF;
    END LOOP;
    RETURN v_gone;
END
$$;

-- And of minutes.
CREATE FUNCTION gristmill.forget_minutes(p_limit integer, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_old   timestamptz := date_trunc('minute', p_now - gristmill.minutes_kept());
    v_queue integer;
    v_step  bigint;
    v_gone  bigint := 0;
BEGIN
    FOR v_queue IN SELECT q.number FROM gristmill.queue q LOOP
        DELETE FROM gristmill.minute m
         WHERE m.ctid = ANY (ARRAY(
                   SELECT x.ctid FROM gristmill.minute x
                    WHERE x.queue = v_queue AND x.at < v_old
                    ORDER BY x.at LIMIT p_limit - v_gone FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS v_step = ROW_COUNT;
        v_gone := v_gone + v_step;
    END LOOP;
    RETURN v_gone;
END
$$;

-- One step of a chore: how many it dealt with, whether there may be more, and
-- whose workers may have something to do now.
CREATE FUNCTION gristmill.do_chore(
    p_chore text, p_now timestamptz DEFAULT NULL,
    OUT done bigint, OUT more boolean, OUT woken text[]
)
LANGUAGE plpgsql
-- By index whatever the statistics say: what they say of a table that was
-- empty when it was last looked at would join row by row with everything.
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    c_step  constant integer := 5000;
    c_fold  constant integer := 20000;
    c_put   constant integer := 1000;
    -- A hundred thousand tasks of bound queues are looked at within a minute.
    c_subjects constant integer := 2000;
    v_now   timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    done := 0;
    more := false;
    IF NOT gristmill.my_turn(p_chore) THEN
        RETURN;
    END IF;
    CASE p_chore
    WHEN 'promote' THEN
        done := gristmill.promote(c_step, v_now);
        more := done = c_step;
    WHEN 'unblock' THEN
        SELECT u.done, u.more, u.woken INTO done, more, woken
          FROM gristmill.unblock_missed(c_step, v_now) u;
    WHEN 'markers' THEN
        SELECT m.enqueued, m.seen = c_put, m.woken INTO done, more, woken
          FROM gristmill.put_markers(c_put, v_now) m;
    WHEN 'subjects' THEN
        done := gristmill.sweep_subjects(c_subjects, v_now);
    WHEN 'fold' THEN
        done := gristmill.fold(c_fold);
        more := done = c_fold;
    WHEN 'ids' THEN
        done := gristmill.forget_ids(c_step, v_now);
        more := done = c_step;
    WHEN 'done' THEN
        done := gristmill.forget_done(c_step, v_now);
        more := done = c_step;
    WHEN 'failed' THEN
        done := gristmill.forget_failed(c_step, v_now);
        more := done = c_step;
    WHEN 'endings' THEN
        done := gristmill.forget_endings(c_step, v_now);
        more := done = c_step;
    WHEN 'documents' THEN
        DELETE FROM gristmill.document d
         WHERE d.keep IS NOT NULL
           AND extract(epoch FROM v_now - d.changed_at) * 1000000 > d.keep;
        GET DIAGNOSTICS done = ROW_COUNT;
    WHEN 'minutes' THEN
        done := gristmill.forget_minutes(c_step, v_now);
        more := done = c_step;
    ELSE
        RAISE EXCEPTION 'there is no chore ''%''', p_chore USING ERRCODE = 'GM400';
    END CASE;
END
$$;

-- Un-blocks tasks whose key became free unnoticed: goes through the blocked ones
-- from where the last step ended, and asks for each whether its key is in flight.
-- Asked by value: as EXISTS it may be answered by reading all keys in flight for
-- each blocked task.
CREATE FUNCTION gristmill.unblock_missed(
    p_limit integer, p_now timestamptz, OUT done bigint, OUT more boolean, OUT woken text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_from record;
    v_seen record;
    v_some record;
BEGIN
    done := 0;
    SELECT c.key, c.queue INTO v_from FROM gristmill.chore c WHERE c.name = 'unblock';
    IF NOT FOUND THEN
        SELECT '' AS key, 0 AS queue INTO v_from;
    END IF;
    SELECT array_agg(b.key::text) AS keys, array_agg(b.queue) AS queues,
           array_agg(b.key::text) FILTER (WHERE b.is_free) AS free_keys,
           array_agg(b.queue) FILTER (WHERE b.is_free) AS free_queues
      INTO v_seen
      FROM (SELECT t.key, t.queue, (SELECT f.id FROM gristmill.flight f
                                     WHERE f.key = t.key AND f.queue = t.queue) IS NULL AS is_free
              FROM gristmill.task t
             WHERE t.blocked AND (t.key, t.queue) > (v_from.key, v_from.queue)
             ORDER BY t.key, t.queue LIMIT p_limit) b;
    FOR v_some IN
        SELECT q.number, q.name::text AS name, array_agg(f.key) AS keys
          FROM unnest(v_seen.free_keys, v_seen.free_queues) AS f (key, queue)
          JOIN gristmill.queue q ON q.number = f.queue
         GROUP BY q.number, q.name
    LOOP
        done := done + gristmill.unblock(v_some.number, v_some.keys, p_now);
        woken := woken || v_some.name;
    END LOOP;
    more := coalesce(cardinality(v_seen.keys), 0) = p_limit;
    IF more THEN
        INSERT INTO gristmill.chore (name, key, queue)
        VALUES ('unblock', v_seen.keys[p_limit], v_seen.queues[p_limit])
        ON CONFLICT (name) DO UPDATE SET key = excluded.key, queue = excluded.queue;
    ELSIF v_from.key <> '' THEN
        DELETE FROM gristmill.chore c WHERE c.name = 'unblock';
    END IF;
END
$$;

-- After the clock went back: no lease lasts longer than its length. Whoever
-- extends holds the deadline, and gives it its length himself. Tells how many
-- were cut.
CREATE FUNCTION gristmill.cut_leases(p_limit integer, p_now timestamptz DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_now   timestamptz := coalesce(p_now, clock_timestamp());
    v_queue integer;
    v_step  bigint;
    v_cut   bigint := 0;
BEGIN
    FOR v_queue IN SELECT q.number FROM gristmill.queue q LOOP
        UPDATE gristmill.deadline d SET until = gristmill.later(v_now, d.lease)
         WHERE d.ctid = ANY (ARRAY(
                   SELECT x.ctid FROM gristmill.deadline x
                    WHERE x.queue = v_queue AND x.until > v_now
                      AND x.until > gristmill.later(v_now, x.lease)
                    ORDER BY x.until LIMIT p_limit - v_cut FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS v_step = ROW_COUNT;
        v_cut := v_cut + v_step;
    END LOOP;
    RETURN v_cut;
END
$$;

-- After the clock went back: tasks that count as ready but are not due any more
-- count as delayed again. Looks at so many from a place in the claim order of all
-- queues on (null: from the begin; without run_at: behind this level), and tells
-- where to go on (null: all were seen). What somebody holds at the moment is
-- passed over: it stays counted as it is until it leaves.
CREATE FUNCTION gristmill.count_undue(
    p_queue integer, p_level smallint, p_run_at timestamptz, p_id bigint, p_limit integer,
    p_now timestamptz DEFAULT NULL,
    OUT queue integer, OUT level smallint, OUT run_at timestamptz, OUT id bigint
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
#variable_conflict use_column
DECLARE
    v_now    timestamptz := coalesce(p_now, clock_timestamp());
    v_queue  integer := p_queue;
    v_level  smallint := p_level;
    v_run_at timestamptz := p_run_at;
    v_id     bigint := p_id;
    v_left   integer := p_limit;
    v_seen   record;
BEGIN
    LOOP
        IF v_run_at IS NULL THEN
            IF v_queue IS NOT NULL THEN
                v_level := gristmill.next_level(v_queue, NULL, v_level);
            END IF;
            WHILE v_level IS NULL LOOP
                v_queue := (SELECT q.number FROM gristmill.queue q
                             WHERE v_queue IS NULL OR q.number > v_queue
                             ORDER BY q.number LIMIT 1);
                IF v_queue IS NULL THEN
                    RETURN;
                END IF;
                v_level := gristmill.next_level(v_queue, NULL, NULL);
            END LOOP;
            v_run_at := v_now;
            v_id := 9223372036854775807;
        END IF;
        SELECT array_agg(s.run_at) AS run_ats, array_agg(s.id) AS ids,
               array_agg(s.id) FILTER (WHERE s.is_ready) AS ready
          INTO v_seen
          FROM (SELECT t.run_at, t.id,
                       (SELECT d.id FROM gristmill.delayed d
                         WHERE d.run_at = t.run_at AND d.id = t.id) IS NULL AS is_ready
                  FROM gristmill.task t
                 WHERE t.queue = v_queue AND NOT t.blocked AND t.priority = v_level
                   AND (t.run_at, t.id) > (v_run_at, v_id)
                 ORDER BY t.run_at, t.id LIMIT v_left) s;
        IF v_seen.ready IS NOT NULL THEN
            WITH held AS MATERIALIZED (
                SELECT t.ctid AS place, t.run_at, t.id, t.delayed FROM gristmill.task t
                 WHERE t.id = ANY (v_seen.ready) AND NOT t.blocked AND t.run_at > v_now
                   FOR UPDATE SKIP LOCKED
            ), marked AS (
                UPDATE gristmill.task t SET delayed = true
                 WHERE t.ctid = ANY (ARRAY(SELECT h.place FROM held h WHERE NOT h.delayed))
            ), waiting AS (
                -- Another process may have been here a moment ago.
                INSERT INTO gristmill.delayed (run_at, id, queue)
                SELECT h.run_at, h.id, v_queue FROM held h
                ON CONFLICT DO NOTHING
                RETURNING id
            )
            INSERT INTO gristmill.delta (at, queue, ready, delayed)
            SELECT v_now, v_queue, -count(*), count(*) FROM waiting w HAVING count(*) > 0;
        END IF;
        v_left := v_left - coalesce(cardinality(v_seen.ids), 0);
        IF v_left <= 0 THEN
            queue := v_queue;
            level := v_level;
            run_at := v_seen.run_ats[cardinality(v_seen.ids)];
            id := v_seen.ids[cardinality(v_seen.ids)];
            RETURN;
        END IF;
        v_run_at := NULL;
    END LOOP;
END
$$;

-- All queues' numbers, from kept counts.
CREATE FUNCTION gristmill.queue_stats(p_now timestamptz DEFAULT NULL)
RETURNS TABLE (
    queue text, number integer, paused boolean, capacity bigint, oldest_ready timestamptz,
    now timestamptz,
    ready bigint, delayed bigint, blocked bigint, processing bigint, failed_now bigint,
    done_kept bigint, put bigint, duplicate bigint, replaced bigint, refused bigint,
    claimed bigint, done bigint, retried bigint, failed bigint, released bigint, expired bigint,
    lease_lost bigint, cancelled bigint, discarded bigint, resolved bigint,
    operator_retried bigint, subject_gone bigint
)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    RETURN QUERY
    SELECT q.name::text, q.number, q.paused, q.capacity, o.at, v_now,
           (t.ready + coalesce(d.ready, 0))::bigint,
           (t.delayed + coalesce(d.delayed, 0))::bigint,
           (t.blocked + coalesce(d.blocked, 0))::bigint,
           (t.processing + coalesce(d.processing, 0))::bigint,
           (t.failed_now + coalesce(d.failed_now, 0))::bigint,
           (t.done_kept + coalesce(d.done_kept, 0))::bigint,
           (t.put + coalesce(d.put, 0))::bigint, (t.duplicate + coalesce(d.duplicate, 0))::bigint,
           (t.replaced + coalesce(d.replaced, 0))::bigint,
           (t.refused + coalesce(d.refused, 0))::bigint,
           (t.claimed + coalesce(d.claimed, 0))::bigint, (t.done + coalesce(d.done, 0))::bigint,
           (t.retried + coalesce(d.retried, 0))::bigint,
           (t.failed + coalesce(d.failed, 0))::bigint,
           (t.released + coalesce(d.released, 0))::bigint,
           (t.expired + coalesce(d.expired, 0))::bigint,
           (t.lease_lost + coalesce(d.lease_lost, 0))::bigint,
           (t.cancelled + coalesce(d.cancelled, 0))::bigint,
           (t.discarded + coalesce(d.discarded, 0))::bigint,
           (t.resolved + coalesce(d.resolved, 0))::bigint,
           (t.operator_retried + coalesce(d.operator_retried, 0))::bigint,
           (t.subject_gone + coalesce(d.subject_gone, 0))::bigint
      FROM gristmill.queue q
      JOIN gristmill.total t ON t.queue = q.number
      LEFT JOIN (
          SELECT x.queue, sum(x.ready) AS ready, sum(x.delayed) AS delayed,
                 sum(x.blocked) AS blocked, sum(x.processing) AS processing,
                 sum(x.failed_now) AS failed_now, sum(x.done_kept) AS done_kept,
                 sum(x.put) AS put, sum(x.duplicate) AS duplicate, sum(x.replaced) AS replaced,
                 sum(x.refused) AS refused, sum(x.claimed) AS claimed, sum(x.done) AS done,
                 sum(x.retried) AS retried, sum(x.failed) AS failed, sum(x.released) AS released,
                 sum(x.expired) AS expired, sum(x.lease_lost) AS lease_lost,
                 sum(x.cancelled) AS cancelled, sum(x.discarded) AS discarded,
                 sum(x.resolved) AS resolved, sum(x.operator_retried) AS operator_retried,
                 sum(x.subject_gone) AS subject_gone
            FROM gristmill.delta x GROUP BY x.queue) d ON d.queue = q.number
      LEFT JOIN LATERAL (SELECT gristmill.oldest_due(q.number, v_now) AS at) o ON true
     ORDER BY q.number;
END
$$;

-- When the oldest task that is due fell due: the first of each level.
CREATE FUNCTION gristmill.oldest_due(p_queue integer, p_now timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_level  smallint;
    v_oldest timestamptz;
BEGIN
    LOOP
        v_level := gristmill.next_level(p_queue, NULL, v_level);
        EXIT WHEN v_level IS NULL;
        v_oldest := least(v_oldest, (
            SELECT t.run_at FROM gristmill.task t
             WHERE t.queue = p_queue AND NOT t.blocked AND t.priority = v_level
               AND t.run_at <= p_now
             ORDER BY t.run_at, t.id LIMIT 1));
    END LOOP;
    RETURN v_oldest;
END
$$;
