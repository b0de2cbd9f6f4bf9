-- Settling and extending: both ask for the lease's current token. Whoever
-- finds no lease row with it changes nothing.

-- Settles as done, many at once and in few statements: the common end. Pairs
-- that need more (a stale token, a queue that keeps done tasks) are left to
-- settle_one. `recorded` is null when every pair was.
CREATE FUNCTION gristmill.settle_done(
    p_tokens uuid[], p_ids bigint[], p_now timestamptz,
    OUT recorded boolean[], OUT woken integer[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_held   record;
    v_done   bigint[];
    v_keys   text[];
    v_queue  integer;
    v_count  integer := 0;
    v_all    bigint := 0;
    v_empty  boolean := false;
    v_wholes uuid[];
    v_tokens uuid[];
    v_ids    bigint[];
BEGIN
    FOR v_held IN
        -- Locked in the order of tokens, so that settlements, extensions and
        -- reclaims of the same leases wait for each other in one direction.
        WITH held AS MATERIALIZED (
            SELECT l.token, l.queue, l.open, l.keyed, l.keys, q.slots, g.ids,
                   l.open = g.ids AS is_whole, cardinality(l.open) < cardinality(l.ids) AS is_rest
              FROM (SELECT u.token, array_agg(DISTINCT u.id ORDER BY u.id) AS ids
                      FROM unnest(p_tokens, p_ids) AS u (token, id) GROUP BY u.token) g
              JOIN gristmill.lease l ON l.token = g.token
              JOIN gristmill.queue q ON q.number = l.queue AND q.keep_done IS NULL
             ORDER BY l.token
               FOR UPDATE OF l
        ), whole AS (
            -- Every open task of the claim: one row less, whatever their number.
            DELETE FROM gristmill.lease l USING held h
             WHERE l.token = h.token AND h.is_whole
        ), part AS (
            UPDATE gristmill.lease l
               SET open = ARRAY(SELECT unnest(h.open) EXCEPT SELECT unnest(h.ids) ORDER BY 1)
              FROM held h
             WHERE l.token = h.token AND NOT h.is_whole
        )
        SELECT * FROM held
    LOOP
        IF v_held.is_whole THEN
            v_done := v_held.open;
            v_wholes := v_wholes || v_held.token;
        ELSE
            v_done := ARRAY(SELECT unnest(v_held.open) INTERSECT SELECT unnest(v_held.ids));
            v_empty := v_empty OR cardinality(v_done) = cardinality(v_held.open);
            CONTINUE WHEN v_done = '{}';
            v_tokens := v_tokens || array_fill(v_held.token, ARRAY[cardinality(v_done)]);
            v_ids := v_ids || v_done;
        END IF;
        IF v_queue IS DISTINCT FROM v_held.queue THEN
            IF v_count > 0 THEN
                INSERT INTO gristmill.delta (at, queue, processing, done)
                VALUES (p_now, v_queue, -v_count, v_count);
            END IF;
            v_queue := v_held.queue;
            v_count := 0;
        END IF;
        v_count := v_count + cardinality(v_done);
        v_all := v_all + cardinality(v_done);
        IF v_held.keyed IS NOT NULL THEN
            v_keys := v_held.keys;
            -- Keys of tasks that were settled before are others' by now.
            IF v_held.is_rest OR NOT v_held.is_whole THEN
                SELECT array_agg(k.key) INTO v_keys
                  FROM unnest(v_held.keyed, v_held.keys) AS k (id, key)
                 WHERE k.id = ANY (v_done);
            END IF;
            IF v_keys IS NOT NULL AND gristmill.free_keys(v_queue, v_keys, p_now) > 0 THEN
                woken := woken || v_queue;
            END IF;
        END IF;
        IF v_held.slots IS NOT NULL THEN
            -- A slot is free again: a task of the group may be claimable.
            woken := woken || v_queue;
        END IF;
    END LOOP;
    IF v_count > 0 THEN
        INSERT INTO gristmill.delta (at, queue, processing, done)
        VALUES (p_now, v_queue, -v_count, v_count);
    END IF;
    IF v_empty THEN
        DELETE FROM gristmill.lease l WHERE l.token = ANY (p_tokens) AND l.open = '{}';
    END IF;
    IF v_all < cardinality(p_ids) THEN
        -- Of a pair that is named twice, the first settled it.
        recorded := ARRAY(
            SELECT g.nth = 1 AND (d.id IS NOT NULL OR coalesce(g.token = ANY (v_wholes), false))
              FROM (SELECT u.*, row_number() OVER (PARTITION BY u.token, u.id ORDER BY u.position)
                               AS nth
                      FROM unnest(p_tokens, p_ids) WITH ORDINALITY AS u (token, id, position)) g
              LEFT JOIN unnest(v_tokens, v_ids) AS d (token, id) USING (token, id)
             ORDER BY g.position);
    END IF;
END
$$;

-- Settles one task, however it ended. answer: 0 recorded, 1 already recorded,
-- 2 gone, 3 lease lost. became: 0 done, 1 pending, 2 failed, 3 cancelled.
CREATE FUNCTION gristmill.settle_one(
    p_id bigint, p_token uuid, p_outcome text, p_error text, p_at timestamptz,
    p_started boolean, p_free integer, p_kept integer, p_now timestamptz,
    OUT answer smallint, OUT became smallint, OUT run_at timestamptz, OUT woken integer
)
LANGUAGE plpgsql AS $$
DECLARE
    v_lease   record;
    v_queue   gristmill.queue;
    v_task    gristmill.task;
    v_next    gristmill.next;
    v_settled uuid;
    v_state   text;
BEGIN
    -- The guarded statement: without an open place under this very token
    -- nothing changes.
    UPDATE gristmill.lease l SET open = array_remove(l.open, p_id)
     WHERE l.token = p_token AND p_id = ANY (l.open)
    RETURNING l.queue, l.worker, l.claimed_at, l.cancelled, l.open,
              l.tasks[array_position(l.ids, p_id)] AS task INTO v_lease;
    IF NOT FOUND THEN
        SELECT s.queue, s.settled, s.state INTO v_lease.queue, v_settled, v_state
          FROM gristmill.standing(p_id) s;
        IF NOT FOUND THEN
            answer := 2;
        ELSIF v_settled = p_token THEN
            answer := 1;
        ELSE
            answer := 3;
            IF v_state <> 'done' THEN
                INSERT INTO gristmill.delta (at, queue, lease_lost)
                VALUES (p_now, v_lease.queue, 1);
            END IF;
        END IF;
        RETURN;
    END IF;
    SELECT * INTO v_queue FROM gristmill.queue q WHERE q.number = v_lease.queue;
    v_task := v_lease.task;
    IF v_lease.open = '{}' THEN
        DELETE FROM gristmill.lease l WHERE l.token = p_token;
    END IF;
    v_task.attempts := v_task.attempts + 1;
    v_task.claims := v_task.claims + 1;
    v_task.claimed_at := v_lease.claimed_at;
    v_next := gristmill.after_attempt(v_task, v_queue, p_outcome, p_error, p_at, p_started,
        coalesce(p_id = ANY (v_lease.cancelled), false), p_free, p_now);
    v_task.history := gristmill.told(v_task.history, v_lease.worker, v_lease.claimed_at, p_now,
        CASE WHEN v_next.kind = 'cancelled' THEN 'cancelled' ELSE p_outcome END, p_error, p_kept);
    v_task.error := coalesce(p_error, v_task.error);
    v_task.settled := p_token;
    IF v_next.kind = 'back' THEN
        INSERT INTO gristmill.delta (at, queue, released, retried)
        VALUES (p_now, v_queue.number, v_next.released::integer, (NOT v_next.released)::integer);
    END IF;
    IF gristmill.end_attempt(v_queue, v_task, v_next, p_now) > 0
       OR v_queue.slots IS NOT NULL OR v_next.kind = 'back' THEN
        woken := v_queue.number;
    END IF;
    answer := 0;
    became := array_position(ARRAY['done', 'back', 'failed', 'cancelled'], v_next.kind) - 1;
    IF v_next.kind = 'back' THEN
        run_at := v_next.run_at;
    END IF;
END
$$;

-- Settles many, each by itself, in order, with its follow-ups. Follow-ups are
-- parallel arrays as of put_many; f_of says whose each is, and one without a
-- payload was refused by the caller. outcomes: done,
-- error, timed_out, retry, fail, release, cancelled. Null answers: everything
-- was done as asked. p_patience: so many milliseconds somebody else's open
-- transaction is waited for that settles a task of the same lease or put a
-- follow-up's key; then nothing is settled.
CREATE FUNCTION gristmill.settle_many(
    p_tokens uuid[], p_ids bigint[], p_outcomes text[] DEFAULT NULL,
    p_errors text[] DEFAULT NULL, p_ats timestamptz[] DEFAULT NULL,
    p_delays bigint[] DEFAULT NULL, p_started boolean[] DEFAULT NULL,
    f_of integer[] DEFAULT NULL, f_queues text[] DEFAULT NULL, f_payloads bytea[] DEFAULT NULL,
    f_encodings smallint[] DEFAULT NULL, f_keys text[] DEFAULT NULL, f_groups text[] DEFAULT NULL,
    f_sources text[] DEFAULT NULL, f_priorities smallint[] DEFAULT NULL,
    f_run_ats timestamptz[] DEFAULT NULL, f_delays bigint[] DEFAULT NULL,
    f_caller_ids text[] DEFAULT NULL, f_headers text[] DEFAULT NULL,
    p_own boolean DEFAULT false, p_patience integer DEFAULT NULL, p_free integer DEFAULT 20,
    p_kept integer DEFAULT 10, p_now timestamptz DEFAULT NULL,
    OUT answers smallint[], OUT became smallint[], OUT run_ats timestamptz[], OUT woken text[],
    OUT follow_ups smallint[], OUT follow_ids bigint[], OUT follow_run_ats timestamptz[],
    OUT follow_sources text[], OUT follow_details text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_now      timestamptz := coalesce(p_now, clock_timestamp());
    v_numbers  integer[];
    v_recorded boolean[];
    v_one      record;
    v_put      record;
    v_count    integer := cardinality(p_ids);
    v_outcome  text;
    v_set      text;
    i          integer := 1;
    j          integer;
BEGIN
    IF p_patience IS NOT NULL THEN
        v_set := set_config('lock_timeout', p_patience::text, true);
    END IF;
    IF p_own AND EXISTS (SELECT 1 FROM gristmill.queue q WHERE q.relaxed)
       AND f_of IS NULL AND NOT EXISTS (
           SELECT 1 FROM gristmill.lease l JOIN gristmill.queue q ON q.number = l.queue
            WHERE l.token = ANY (p_tokens) AND NOT q.relaxed) THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF p_outcomes IS NULL THEN
        SELECT s.recorded, s.woken INTO v_recorded, v_numbers
          FROM gristmill.settle_done(p_tokens, p_ids, v_now) s;
    END IF;
    IF p_outcomes IS NOT NULL OR v_recorded IS NOT NULL THEN
        -- Filled first: an array that grows from its middle does not begin at 1.
        answers := array_fill(0::smallint, ARRAY[v_count]);
        became := array_fill(0::smallint, ARRAY[v_count]);
        run_ats := array_fill(NULL::timestamptz, ARRAY[v_count]);
    END IF;
    IF f_of IS NOT NULL THEN
        follow_ups := array_fill(NULL::smallint, ARRAY[cardinality(f_of)]);
        follow_ids := array_fill(NULL::bigint, ARRAY[cardinality(f_of)]);
        follow_run_ats := array_fill(NULL::timestamptz, ARRAY[cardinality(f_of)]);
        follow_sources := array_fill(NULL::text, ARRAY[cardinality(f_of)]);
        follow_details := array_fill(NULL::text, ARRAY[cardinality(f_of)]);
    END IF;
    WHILE (p_outcomes IS NOT NULL OR answers IS NOT NULL) AND i <= v_count LOOP
        IF p_outcomes IS NOT NULL OR NOT v_recorded[i] THEN
            v_outcome := coalesce(p_outcomes[i], 'done');
            SELECT * INTO v_one FROM gristmill.settle_one(p_ids[i], p_tokens[i], v_outcome,
                p_errors[i], coalesce(p_ats[i], gristmill.later(v_now, gristmill.span(p_delays[i]))),
                coalesce(p_started[i], true), p_free, p_kept, v_now);
            answers[i] := v_one.answer;
            became[i] := v_one.became;
            run_ats[i] := v_one.run_at;
            v_numbers := v_numbers || v_one.woken;
            IF v_one.answer = 0 AND i = ANY (f_of) THEN
                FOR j IN 1..cardinality(f_of) LOOP
                    CONTINUE WHEN f_of[j] <> i;
                    IF f_payloads[j] IS NULL THEN
                        -- The caller refused it already: it is only counted.
                        INSERT INTO gristmill.delta (at, queue, refused)
                        SELECT v_now, q.number, 1 FROM gristmill.queue q
                         WHERE q.name = f_queues[j];
                        follow_ups[j] := 3;
                        follow_details[j] := CASE WHEN FOUND THEN 'refused'
                                                  ELSE 'unknown_queue' END;
                        CONTINUE;
                    END IF;
                    SELECT * INTO v_put FROM gristmill.put_many(f_queues[j],
                        f_payloads[j:j], f_encodings[j:j], f_keys[j:j], f_groups[j:j],
                        f_sources[j:j], f_priorities[j:j], f_run_ats[j:j], f_delays[j:j],
                        CASE WHEN f_caller_ids[j] IS NOT NULL THEN f_caller_ids[j:j] END,
                        f_headers[j:j], p_outside => false, p_now => v_now);
                    follow_ups[j] := CASE WHEN NOT v_put.is_known THEN 3
                                          ELSE coalesce(v_put.outcomes[1], 0) END;
                    follow_ids[j] := v_put.ids[1];
                    follow_run_ats[j] := v_put.run_ats[1];
                    follow_sources[j] := v_put.sources[1];
                    follow_details[j] := CASE WHEN NOT v_put.is_known THEN 'unknown_queue'
                                              ELSE v_put.details[1] END;
                    woken := woken || f_queues[j];
                END LOOP;
            END IF;
        END IF;
        i := i + 1;
    END LOOP;
    IF v_numbers IS NOT NULL THEN
        woken := woken || ARRAY(SELECT q.name::text FROM gristmill.queue q
                                 WHERE q.number = ANY (v_numbers));
    END IF;
END
$$;

-- Prolongs leases. A lease whose time is over but whose tasks nobody took is
-- prolonged like any other. Answers in order; extended is false for a lost one.
--
-- One whose row somebody's open transaction holds, because its handler settles
-- in it, counts as extended although its end stays: nobody can take its tasks
-- while the row is held, the next extension moves it, and the others of this
-- call are not held up until then.
CREATE FUNCTION gristmill.extend_many(
    p_tokens uuid[], p_leases bigint[], p_now timestamptz DEFAULT NULL
) RETURNS TABLE (extended boolean, cancelled bigint[], lost bigint[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := coalesce(p_now, clock_timestamp());
    v_free  uuid[];
    v_held  uuid[];
    v_token uuid;
    v_set   text := current_setting('lock_timeout');
BEGIN
    v_free := ARRAY(SELECT l.token FROM gristmill.lease l WHERE l.token = ANY (p_tokens)
                     ORDER BY l.token FOR UPDATE SKIP LOCKED);
    v_held := ARRAY(SELECT l.token FROM gristmill.lease l
                     WHERE l.token = ANY (p_tokens) AND l.token <> ALL (v_free) ORDER BY l.token);
    IF v_held <> '{}' THEN
        -- Most of these are being settled at this moment: a little patience.
        PERFORM set_config('lock_timeout', '100', true);
        FOREACH v_token IN ARRAY v_held LOOP
            BEGIN
                PERFORM 1 FROM gristmill.lease l WHERE l.token = v_token FOR UPDATE;
                v_held := array_remove(v_held, v_token);
            EXCEPTION WHEN lock_not_available THEN
                NULL;
            END;
        END LOOP;
        PERFORM set_config('lock_timeout', v_set, true);
    END IF;
    RETURN QUERY
    WITH prolonged AS (
        UPDATE gristmill.lease l
           SET until = gristmill.later(v_now, gristmill.span(g.lease))
          -- Of a token that is named twice, the last word counts.
          FROM (SELECT DISTINCT ON (u.token) u.token, u.lease
                  FROM unnest(p_tokens, p_leases) WITH ORDINALITY AS u (token, lease, position)
                 ORDER BY u.token, u.position DESC) g
         WHERE l.token = g.token AND l.token <> ALL (v_held)
        RETURNING l.token, l.lost,
                  ARRAY(SELECT unnest(l.cancelled) INTERSECT SELECT unnest(l.open) ORDER BY 1)
                      AS cancelled
    )
    SELECT p.token IS NOT NULL OR g.token = ANY (v_held), coalesce(p.cancelled, '{}'),
           coalesce(p.lost, '{}')
      FROM unnest(p_tokens) WITH ORDINALITY AS g (token, position)
      LEFT JOIN prolonged p ON p.token = g.token
     ORDER BY g.position;
END
$$;
