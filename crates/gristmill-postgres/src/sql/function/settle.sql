-- Settling and extending: both ask for the lease's current token. Whoever
-- finds no lease row with it changes nothing.
--
-- The store settles in transactions of its own, at once (settle_now), and so does
-- a single statement of anybody else. In a
-- caller's transaction a settlement is written down (`settling`) and carried out
-- by a trigger as the transaction commits. So an open transaction holds neither
-- the lease nor the key: its claim's other tasks are settled, heartbeats prolong
-- it, and if it ends nevertheless, its tasks are taken back and the commit fails.

-- Leases that are gone need no deadline. Under an old snapshot a heartbeat may
-- have moved it, and taking it away would fail: it goes at its time. So does one
-- that somebody holds: who reclaims holds deadlines and may then have to wait for
-- a lease that was written meanwhile (SKIP LOCKED does not cover the newer version
-- of a row), and whoever settles holds the lease.
CREATE FUNCTION gristmill.end_deadlines(p_tokens uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') = 'read committed' THEN
        DELETE FROM gristmill.deadline d
         WHERE d.ctid = ANY (ARRAY(SELECT x.ctid FROM gristmill.deadline x
                                    WHERE x.token = ANY (p_tokens) FOR UPDATE SKIP LOCKED));
    END IF;
END
$$;

-- Settles as done, many at once and in few statements: the common end. Pairs
-- that need more (a stale token, a queue that keeps done tasks) are left to
-- settle_rest. p_gone: of these pairs, those that settle_rest ended just now and
-- left for this function to take out of their leases; p_less: how many pairs are
-- settle_rest's, ended or not. `recorded` is null when every other pair was.
CREATE FUNCTION gristmill.settle_done(
    p_tokens uuid[], p_ids bigint[], p_gone_tokens uuid[], p_gone bigint[], p_less integer,
    p_now timestamptz, OUT recorded boolean[], OUT woken integer[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_held   record;
    v_done   bigint[];
    v_gone   bigint[];
    v_ended  integer;
    v_keys   text[];
    v_queue  integer;
    v_count  integer := 0;
    v_all    bigint := 0;
    v_empty  boolean := false;
    v_wholes uuid[];
    v_emptied uuid[];
    v_tokens uuid[];
    v_ids    bigint[];
    v_kept   bigint[];
    v_over   bigint[];
BEGIN
    FOR v_held IN
        -- Locked in the order of tokens, so that settlements, extensions and
        -- reclaims of the same leases wait for each other in one direction.
        WITH held AS MATERIALIZED (
            SELECT l.token, l.queue, l.open, l.keyed, l.keys, l.kept, q.frees, q.unique_active, g.ids,
                   l.open = g.ids AS is_whole, cardinality(l.open) < cardinality(l.ids) AS is_rest
              FROM (SELECT u.token, array_agg(DISTINCT u.id ORDER BY u.id) AS ids
                      FROM unnest(p_tokens, p_ids) AS u (token, id)
                     GROUP BY u.token) g
              JOIN gristmill.lease l ON l.token = g.token
              -- Each lease's own queue, and not the leases of a queue: OFFSET 0
              -- keeps a plan from beginning there.
              JOIN LATERAL (SELECT x.frees, x.unique_active, x.keep_done, x.keep_result
                              FROM gristmill.queue x
                             WHERE x.number = l.queue OFFSET 0) q
                ON q.keep_done IS NULL AND q.keep_result IS NULL
                -- Was so when settle_rest looked: those it ended have to leave the lease.
                OR l.token = ANY (p_gone_tokens)
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
        v_gone := NULL;
        IF v_held.token = ANY (p_gone_tokens) THEN
            v_gone := ARRAY(SELECT u.id FROM unnest(p_gone_tokens, p_gone) AS u (token, id)
                             WHERE u.token = v_held.token);
        END IF;
        IF v_held.is_whole THEN
            v_done := v_held.open;
            v_ended := cardinality(v_done) - coalesce(cardinality(v_gone), 0);
            v_wholes := v_wholes || v_held.token;
        ELSE
            v_done := ARRAY(SELECT unnest(v_held.open) INTERSECT
                            (SELECT unnest(v_held.ids) EXCEPT SELECT unnest(v_gone)));
            v_ended := cardinality(v_done);
            v_empty := v_empty
                OR v_ended + coalesce(cardinality(v_gone), 0) = cardinality(v_held.open);
            CONTINUE WHEN v_done = '{}';
            v_tokens := v_tokens || array_fill(v_held.token, ARRAY[v_ended]);
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
        v_count := v_count + v_ended;
        v_all := v_all + v_ended;
        IF v_held.keyed IS NOT NULL THEN
            v_keys := v_held.keys;
            -- Keys of tasks that were settled before are others' by now.
            IF v_held.is_rest OR NOT v_held.is_whole OR v_gone IS NOT NULL THEN
                SELECT array_agg(k.key) INTO v_keys
                  FROM unnest(v_held.keyed, v_held.keys) AS k (id, key)
                 WHERE (v_held.is_whole AND NOT v_held.is_rest OR k.id = ANY (v_done))
                   AND (v_gone IS NULL OR k.id <> ALL (v_gone));
            END IF;
            IF v_keys IS NOT NULL
               AND gristmill.free_keys(v_queue, v_keys, v_held.unique_active, p_now) > 0 THEN
                woken := woken || v_queue;
            END IF;
        END IF;
        IF v_held.kept THEN
            v_kept := v_kept || ARRAY(SELECT unnest(v_done) EXCEPT SELECT unnest(v_gone));
        END IF;
        IF v_held.frees THEN
            -- Another task may be claimable now.
            woken := woken || v_queue;
        END IF;
        v_over := v_over || CASE WHEN v_gone IS NULL THEN v_done
            ELSE ARRAY(SELECT unnest(v_done) EXCEPT SELECT unnest(v_gone)) END;
    END LOOP;
    IF EXISTS (SELECT 1 FROM gristmill.wanted w WHERE w.id = ANY (v_over)) THEN
        PERFORM gristmill.end_wanted(v_over, 'done', NULL, p_now);
    END IF;
    IF v_count > 0 THEN
        INSERT INTO gristmill.delta (at, queue, processing, done)
        VALUES (p_now, v_queue, -v_count, v_count);
    END IF;
    IF v_kept IS NOT NULL THEN
        PERFORM gristmill.forget_kept(v_kept);
    END IF;
    IF v_empty THEN
        v_emptied := ARRAY(SELECT l.token FROM gristmill.lease l
                            WHERE l.token = ANY (p_tokens) AND l.open = '{}');
        DELETE FROM gristmill.lease l WHERE l.token = ANY (v_emptied);
    END IF;
    IF v_wholes IS NOT NULL OR v_emptied IS NOT NULL THEN
        PERFORM gristmill.end_deadlines(v_wholes || v_emptied);
    END IF;
    IF v_all < cardinality(p_ids) - p_less THEN
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

-- Settles what is not plainly done, set by set: the tasks are gathered from their
-- leases and end together. p_positions: which of the arrays' entries (null: all).
-- p_is_left: settle_done is asked about the same leases next and writes down what
-- is still open of them, once; of those, `gone` tells what ended. Answers for those
-- whose lease is held: `recorded` has their positions, the other arrays what became
-- of each.
CREATE FUNCTION gristmill.settle_rest(
    p_positions integer[], p_tokens uuid[], p_ids bigint[], p_outcomes text[], p_errors text[],
    p_ats timestamptz[], p_started boolean[], p_is_left boolean, p_free integer,
    p_kept integer, p_now timestamptz,
    OUT recorded integer[], OUT became smallint[], OUT run_ats timestamptz[],
    OUT woken integer[], OUT freed integer[], OUT gone_tokens uuid[], OUT gone bigint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_lease     record;
    v_held      bigint[];
    v_tasks     gristmill.held[];
    v_asked     bigint[];
    v_nths      integer[];
    v_open      bigint[];
    v_settled   bigint[];
    v_id        bigint;
    v_at        integer;
    v_ended     uuid[] := '{}';
    v_some      record;
    -- One entry a task that ends.
    e_tasks     gristmill.held[];
    e_tokens    uuid[];
    e_workers   text[];
    e_begans    timestamptz[];
    e_cancels   boolean[];
    e_positions integer[];
    e_outcomes  text[];
    e_errors    text[];
    e_ats       timestamptz[];
    e_started   boolean[];
BEGIN
    FOR v_lease IN
        SELECT l.token, l.worker, l.claimed_at, l.cancelled, l.open, l.ids, l.tasks,
               q.keep_done IS NULL AND q.keep_result IS NULL AND p_is_left AS is_left, g.nths,
               g.asked, g.outcomes, g.errors, g.ats, g.started
          -- Sorted once, for all of the lists.
          FROM (SELECT u.token, array_agg(u.nth) AS nths, array_agg(u.id) AS asked,
                       array_agg(coalesce(u.outcome, 'done')) AS outcomes,
                       array_agg(u.error) AS errors, array_agg(u.at) AS ats,
                       array_agg(coalesce(u.started, true)) AS started
                  -- All of the lists are unfolded, a few entries are looked at: each
                  -- costs more where the other is asked for.
                  FROM (SELECT x.token, x.id, x.outcome, x.error, x.at, x.started,
                               x.nth::integer AS nth
                          FROM unnest(p_tokens, p_ids, p_outcomes, p_errors, p_ats, p_started)
                               WITH ORDINALITY AS x (token, id, outcome, error, at, started, nth)
                         WHERE p_positions IS NULL
                         UNION ALL
                        SELECT p_tokens[x.nth], p_ids[x.nth], p_outcomes[x.nth],
                               p_errors[x.nth], p_ats[x.nth], p_started[x.nth], x.nth
                          FROM unnest(p_positions) AS x (nth)
                         ORDER BY token, nth) u
                 GROUP BY u.token) g
          JOIN gristmill.lease l ON l.token = g.token
          JOIN LATERAL (SELECT x.keep_done, x.keep_result FROM gristmill.queue x
                         WHERE x.number = l.queue OFFSET 0) q ON true
         ORDER BY l.token
           FOR UPDATE OF l
    LOOP
        -- Into variables of their own: those are unfolded once, not at each look.
        v_held := v_lease.ids;
        v_tasks := v_lease.tasks;
        v_asked := v_lease.asked;
        v_open := v_lease.open;
        v_settled := '{}';
        v_at := 0;
        IF v_asked = v_held AND cardinality(v_open) = cardinality(v_held) THEN
            e_tasks := e_tasks || v_tasks;
            v_settled := v_asked;
        ELSIF cardinality(v_open) = cardinality(v_held) THEN
            -- Nothing of it was settled before: all that is asked for is open.
            FOREACH v_id IN ARRAY v_asked LOOP
                -- Mostly they are named in the order of the claim.
                v_at := CASE WHEN v_held[v_at + 1] = v_id THEN v_at + 1
                             ELSE array_position(v_held, v_id) END;
                EXIT WHEN v_at IS NULL;
                e_tasks := e_tasks || v_tasks[v_at];
            END LOOP;
            IF v_at IS NOT NULL THEN
                v_settled := v_asked;
            ELSE
                e_tasks := e_tasks[1:coalesce(cardinality(e_positions), 0)];
            END IF;
        END IF;
        IF v_settled <> '{}' THEN
            e_positions := e_positions || v_lease.nths;
            e_outcomes := e_outcomes || v_lease.outcomes;
            e_errors := e_errors || v_lease.errors;
            e_ats := e_ats || v_lease.ats;
            e_started := e_started || v_lease.started;
            e_cancels := e_cancels || CASE WHEN v_lease.cancelled IS NULL
                THEN array_fill(false, ARRAY[cardinality(v_asked)])
                ELSE ARRAY(SELECT x.id = ANY (v_lease.cancelled)
                             FROM unnest(v_asked) WITH ORDINALITY AS x (id, nth)
                            ORDER BY x.nth) END;
        ELSE
            v_nths := v_lease.nths;
            FOR i IN 1..cardinality(v_asked) LOOP
                v_id := v_asked[i];
                CONTINUE WHEN array_position(v_open, v_id) IS NULL;
                e_tasks := e_tasks || v_tasks[array_position(v_held, v_id)];
                e_positions := e_positions || v_nths[i];
                e_cancels := e_cancels || coalesce(v_id = ANY (v_lease.cancelled), false);
                e_outcomes := e_outcomes || v_lease.outcomes[i];
                e_errors := e_errors || v_lease.errors[i];
                e_ats := e_ats || v_lease.ats[i];
                e_started := e_started || v_lease.started[i];
                v_settled := v_settled || v_id;
            END LOOP;
        END IF;
        CONTINUE WHEN v_settled = '{}';
        e_tokens := e_tokens || array_fill(v_lease.token, ARRAY[cardinality(v_settled)]);
        e_workers := e_workers || array_fill(v_lease.worker, ARRAY[cardinality(v_settled)]);
        e_begans := e_begans || array_fill(v_lease.claimed_at, ARRAY[cardinality(v_settled)]);
        IF v_lease.is_left THEN
            gone_tokens := gone_tokens
                || array_fill(v_lease.token, ARRAY[cardinality(v_settled)]);
            gone := gone || v_settled;
        ELSIF cardinality(v_settled) = cardinality(v_lease.open) THEN
            v_ended := v_ended || v_lease.token;
        ELSE
            UPDATE gristmill.lease l
               SET open = ARRAY(SELECT unnest(v_lease.open) EXCEPT SELECT unnest(v_settled)
                                 ORDER BY 1)
             WHERE l.token = v_lease.token;
        END IF;
    END LOOP;
    IF e_tasks IS NULL THEN
        RETURN;
    END IF;
    IF v_ended <> '{}' THEN
        DELETE FROM gristmill.lease l WHERE l.token = ANY (v_ended);
        PERFORM gristmill.end_deadlines(v_ended);
    END IF;
    FOR v_some IN
        SELECT * FROM gristmill.end_attempts(e_tasks, e_tokens, e_workers, e_begans, e_cancels,
            e_positions, e_outcomes, e_errors, e_ats, e_started, p_free, p_kept, p_now)
    LOOP
        recorded := recorded || v_some.positions;
        became := became || v_some.became;
        run_ats := run_ats || v_some.run_ats;
        IF v_some.is_woken THEN
            woken := woken || v_some.queue;
        END IF;
        IF v_some.is_freed THEN
            freed := freed || v_some.queue;
        END IF;
    END LOOP;
END
$$;

-- The answer to a settlement that no lease stands behind: 1 already recorded,
-- 2 gone, 3 lease lost.
CREATE FUNCTION gristmill.unheld(p_id bigint, p_token uuid, p_now timestamptz) RETURNS smallint
LANGUAGE plpgsql AS $$
DECLARE
    v_place record;
BEGIN
    SELECT s.queue, s.settled, s.state INTO v_place FROM gristmill.standing(p_id) s;
    IF NOT FOUND THEN
        RETURN 2;
    ELSIF v_place.settled = p_token THEN
        RETURN 1;
    END IF;
    IF v_place.state <> 'done' THEN
        INSERT INTO gristmill.delta (at, queue, lease_lost) VALUES (p_now, v_place.queue, 1);
    END IF;
    RETURN 3;
END
$$;

-- Settles now. No task may be named twice. answers: 0 recorded, and those of
-- unheld; became: 0 done, 1 pending, 2 failed, 3 cancelled. Null answers:
-- everything was done as asked.
CREATE FUNCTION gristmill.settle_now(
    p_tokens uuid[], p_ids bigint[], p_outcomes text[], p_errors text[], p_ats timestamptz[],
    p_started boolean[], p_free integer, p_kept integer, p_now timestamptz,
    OUT answers smallint[], OUT became smallint[], OUT run_ats timestamptz[],
    OUT woken integer[], OUT freed integer[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_count    integer := cardinality(p_ids);
    v_rest     integer[];
    v_left     integer[];
    v_plain    boolean[];
    v_woken    integer[];
    v_gone_of  uuid[];
    v_gone     bigint[];
    v_recorded integer[];
    v_became   smallint[];
    v_run_ats  timestamptz[];
    v_is_first boolean := true;
    v_some     record;
    i          integer;
BEGIN
    IF p_outcomes IS NOT NULL THEN
        v_rest := ARRAY(SELECT u.nth::integer
                          FROM unnest(p_outcomes) WITH ORDINALITY AS u (outcome, nth)
                         WHERE u.outcome <> 'done');
    END IF;
    -- Twice at most: what was asked for, then what is plainly done (in one
    -- statement), then what of that was not so plain.
    LOOP
        IF v_rest <> '{}' THEN
            SELECT * INTO v_some FROM gristmill.settle_rest(
                CASE WHEN cardinality(v_rest) < v_count THEN v_rest END, p_tokens, p_ids,
                p_outcomes, p_errors, p_ats, p_started,
                v_is_first AND cardinality(v_rest) < v_count, p_free, p_kept, p_now);
            v_recorded := v_recorded || v_some.recorded;
            v_became := v_became || v_some.became;
            v_run_ats := v_run_ats || v_some.run_ats;
            woken := woken || v_some.woken;
            freed := freed || v_some.freed;
            v_gone_of := v_some.gone_tokens;
            v_gone := v_some.gone;
            v_left := v_left || v_rest;
        END IF;
        EXIT WHEN NOT v_is_first OR cardinality(v_left) = v_count;
        -- Asked about all pairs, those of settle_rest too: so a lease that all of
        -- this call settles is one row less. What settle_rest found no lease for is
        -- not open here either.
        SELECT s.recorded, s.woken INTO v_plain, v_woken
          FROM gristmill.settle_done(p_tokens, p_ids, v_gone_of, v_gone,
                                     coalesce(cardinality(v_left), 0), p_now) s;
        woken := woken || v_woken;
        freed := freed || v_woken;
        EXIT WHEN v_plain IS NULL;
        v_rest := ARRAY(
            SELECT r.nth::integer FROM unnest(v_plain) WITH ORDINALITY AS r (was, nth)
             WHERE NOT r.was AND r.nth <> ALL (coalesce(v_left, '{}')));
        v_is_first := false;
    END LOOP;
    IF v_left IS NULL THEN
        RETURN;
    END IF;
    -- Filled first: an array that grows from its middle does not begin at 1.
    answers := array_fill(0::smallint, ARRAY[v_count]);
    IF cardinality(v_recorded) = v_count
       AND v_recorded = ARRAY(SELECT generate_series(1, v_count)) THEN
        became := v_became;
        run_ats := v_run_ats;
        RETURN;
    END IF;
    became := array_fill(0::smallint, ARRAY[v_count]);
    run_ats := array_fill(NULL::timestamptz, ARRAY[v_count]);
    -- By position again; and what is left over has no lease behind it.
    FOR i IN 1..coalesce(cardinality(v_recorded), 0) LOOP
        became[v_recorded[i]] := v_became[i];
        run_ats[v_recorded[i]] := v_run_ats[i];
    END LOOP;
    IF v_recorded IS NOT NULL THEN
        v_left := CASE WHEN cardinality(v_recorded) < cardinality(v_left)
                       THEN ARRAY(SELECT l FROM unnest(v_left) l
                                   WHERE l <> ALL (v_recorded)) END;
    END IF;
    FOREACH i IN ARRAY coalesce(v_left, '{}') LOOP
        answers[i] := gristmill.unheld(p_ids[i], p_tokens[i], p_now);
        became[i] := NULL;
    END LOOP;
END
$$;

-- Writes settlements down that are carried out when the caller's transaction
-- commits, and answers what will have become of each then.
CREATE FUNCTION gristmill.settle_later(
    p_tokens uuid[], p_ids bigint[], p_outcomes text[], p_errors text[], p_ats timestamptz[],
    p_started boolean[], p_free integer, p_kept integer, p_now timestamptz, p_clock timestamptz,
    OUT answers smallint[], OUT became smallint[], OUT run_ats timestamptz[],
    OUT woken integer[], OUT freed integer[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_lease record;
    v_task  gristmill.held;
    v_queue gristmill.queue;
    v_next  record;
    v_end   text;
    v_said  text;
BEGIN
    answers := array_fill(0::smallint, ARRAY[cardinality(p_ids)]);
    became := array_fill(0::smallint, ARRAY[cardinality(p_ids)]);
    run_ats := array_fill(NULL::timestamptz, ARRAY[cardinality(p_ids)]);
    FOR i IN 1..cardinality(p_ids) LOOP
        v_end := coalesce(p_outcomes[i], 'done');
        SELECT s.outcome INTO v_said FROM gristmill.settling s WHERE s.id = p_ids[i];
        IF FOUND THEN
            -- As if it were carried out already.
            answers[i] := CASE WHEN v_said = 'done' THEN 2 ELSE 1 END;
            became[i] := NULL;
            CONTINUE;
        END IF;
        SELECT l.queue, l.cancelled INTO v_lease FROM gristmill.lease l
         WHERE l.token = p_tokens[i] AND p_ids[i] = ANY (l.open);
        IF NOT FOUND THEN
            IF current_setting('transaction_isolation') <> 'read committed' THEN
                -- It may have been claimed after the snapshot was taken.
                RAISE EXCEPTION 'this transaction does not see the lease of task %: repeat it in '
                    'a new one', p_ids[i] USING ERRCODE = 'serialization_failure';
            END IF;
            answers[i] := gristmill.unheld(p_ids[i], p_tokens[i], p_now);
            became[i] := NULL;
            CONTINUE;
        END IF;
        INSERT INTO gristmill.settling (token, id, outcome, error, at, started, free, kept, now)
        VALUES (p_tokens[i], p_ids[i], v_end, p_errors[i], p_ats[i], coalesce(p_started[i], true),
                p_free, p_kept, p_clock);
        IF woken IS NULL OR v_lease.queue <> ALL (woken) THEN
            woken := woken || v_lease.queue;
            freed := woken;
        END IF;
        CONTINUE WHEN v_end = 'done';
        SELECT q.* INTO v_queue FROM gristmill.queue q WHERE q.number = v_lease.queue;
        SELECT (l.tasks[array_position(l.ids, p_ids[i])]).* INTO v_task FROM gristmill.lease l
         WHERE l.token = p_tokens[i];
        SELECT n.* INTO v_next FROM gristmill.after_attempt(v_end, p_errors[i], p_ats[i],
            coalesce(p_started[i], true), coalesce(p_ids[i] = ANY (v_lease.cancelled), false),
            v_task.id, v_task.attempts + 1, v_task.claims + 1, v_task.expiries,
            v_task.started_releases, v_task.run_at, v_task.prev_run_at, v_queue.max_attempts,
            v_queue.backoff_base, v_queue.backoff_cap, v_queue.backoff_jitter, p_free, p_now) n;
        became[i] := v_next.became;
        run_ats[i] := CASE WHEN v_next.became = 1 THEN v_next.run_at END;
    END LOOP;
END
$$;

-- Carries out what this transaction wrote down. The first row's trigger does it
-- for all of them, and nobody else's are visible. With the owner's rights: the
-- commit is the caller's, who may have no right but to call `complete`.
CREATE FUNCTION gristmill.settle_at_commit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_all  record;
    v_done record;
    v_lost bigint;
BEGIN
    WITH taken AS (
        DELETE FROM gristmill.settling s RETURNING s.*
    )
    SELECT array_agg(t.token ORDER BY t.id) AS tokens, array_agg(t.id ORDER BY t.id) AS ids,
           CASE WHEN bool_or(t.outcome <> 'done') THEN array_agg(t.outcome ORDER BY t.id) END
               AS outcomes,
           array_agg(t.error ORDER BY t.id) AS errors, array_agg(t.at ORDER BY t.id) AS ats,
           array_agg(t.started ORDER BY t.id) AS started, max(t.free) AS free,
           max(t.kept) AS kept, coalesce(max(t.now), clock_timestamp()) AS now,
           CASE WHEN count(t.result) > 0 THEN array_agg(t.result ORDER BY t.id) END AS results,
           array_agg(t.result_encoding ORDER BY t.id) AS encodings
      INTO v_all FROM taken t;
    IF v_all.ids IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT * INTO v_done FROM gristmill.settle_now(v_all.tokens, v_all.ids, v_all.outcomes,
        v_all.errors, v_all.ats, v_all.started, v_all.free, v_all.kept, v_all.now);
    SELECT x.id INTO v_lost FROM unnest(v_all.ids, v_done.answers) AS x (id, answer)
     WHERE x.answer > 0 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the lease of task % was lost before this transaction committed, and so '
            'nothing of it stands', v_lost
            USING ERRCODE = 'GM410', HINT = 'the task is somebody else''s by now: stop working on it';
    END IF;
    IF v_all.results IS NOT NULL THEN
        PERFORM gristmill.keep_results(v_all.ids, v_all.results, v_all.encodings, v_done.answers,
            v_done.became, v_all.now);
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER settle_at_commit AFTER INSERT ON gristmill.settling
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION gristmill.settle_at_commit();

-- Which follow-ups would be refused, and why; the task that has the id of one that
-- is used, and where the subject of another is not. Holds subjects' rows, so that
-- what is fine stays so. Null: none.
CREATE FUNCTION gristmill.follow_up_faults(
    p_now timestamptz, f_of integer[], f_queues text[], f_payloads bytea[],
    f_encodings smallint[], f_keys text[], f_caller_ids text[],
    OUT faults text[], OUT firsts bigint[], OUT tables text[], OUT columns text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_one    record;
    v_queue  gristmill.queue;
    v_known  gristmill.put_id;
    v_fault  text;
    v_found  text[];
    -- Those on bound queues.
    b_queues integer[];
    b_nths   integer[];
    b_keys   text[];
BEGIN
    -- Most need no look but at their queue.
    FOR v_one IN
        SELECT f.nth::integer AS nth, f.key, f.caller_id, f.payload, f.encoding, q.number,
               q.bind_table
          FROM unnest(f_of, f_queues, f_payloads, f_encodings, f_keys, f_caller_ids)
               WITH ORDINALITY AS f (of, queue, payload, encoding, key, caller_id, nth)
          LEFT JOIN gristmill.queue q ON q.name = f.queue
         WHERE f.of > 0
           AND (q.number IS NULL OR q.bind_table IS NOT NULL OR f.caller_id IS NOT NULL
                OR f.payload IS NULL)
         ORDER BY f.queue, f.key
    LOOP
        v_fault := NULL;
        v_known := NULL;
        IF v_one.number IS NULL THEN
            v_fault := 'unknown_queue';
        ELSIF v_one.payload IS NULL THEN
            v_fault := 'refused';
        END IF;
        IF v_fault IS NULL AND v_one.caller_id IS NOT NULL THEN
            SELECT * INTO v_known FROM gristmill.put_id i
             WHERE i.queue = v_one.number AND i.id = v_one.caller_id AND i.until > p_now;
            IF FOUND AND v_known.digest <> gristmill.digest(v_one.payload,
                                                coalesce(v_one.encoding, 0::smallint)) THEN
                v_fault := 'id_reused';
            END IF;
        END IF;
        IF v_fault IS NULL AND v_one.bind_table IS NOT NULL AND v_known.id IS NULL THEN
            b_queues := b_queues || v_one.number;
            b_nths := b_nths || v_one.nth;
            b_keys := b_keys || v_one.key;
        END IF;
        CONTINUE WHEN v_fault IS NULL;
        faults := coalesce(faults, array_fill(NULL::text, ARRAY[cardinality(f_queues)]));
        firsts := coalesce(firsts, array_fill(NULL::bigint, ARRAY[cardinality(f_queues)]));
        faults[v_one.nth] := v_fault;
        firsts[v_one.nth] := CASE WHEN v_fault = 'id_reused' THEN v_known.task END;
    END LOOP;
    -- Subjects, many at once.
    FOR v_one IN
        SELECT b.queue, array_agg(b.nth) AS nths, array_agg(b.key) AS keys
          FROM unnest(b_queues, b_nths, b_keys) AS b (queue, nth, key)
         GROUP BY b.queue ORDER BY b.queue
    LOOP
        SELECT * INTO v_queue FROM gristmill.queue q WHERE q.number = v_one.queue;
        v_found := gristmill.subject_faults(v_queue, v_one.keys);
        FOR i IN 1..cardinality(v_one.nths) LOOP
            CONTINUE WHEN v_found[i] IS NULL;
            faults := coalesce(faults, array_fill(NULL::text, ARRAY[cardinality(f_queues)]));
            firsts := coalesce(firsts, array_fill(NULL::bigint, ARRAY[cardinality(f_queues)]));
            tables := coalesce(tables, array_fill(NULL::text, ARRAY[cardinality(f_queues)]));
            columns := coalesce(columns, array_fill(NULL::text, ARRAY[cardinality(f_queues)]));
            faults[v_one.nths[i]] := v_found[i];
            tables[v_one.nths[i]] := v_queue.bind_table;
            columns[v_one.nths[i]] := v_queue.bind_column;
        END LOOP;
    END LOOP;
END
$$;

-- Settles many, and puts the follow-ups of those that were recorded: first all
-- settlements, then all follow-ups, queue by queue. Follow-ups are parallel
-- arrays as of put_many; f_of says whose each is, one without a payload is known
-- to be wrong in itself, and one of a negative settlement was refused before: it
-- is only counted. outcomes: done, error, timed_out, retry, fail, release,
-- cancelled. Null answers: everything was done as asked.
--   is_refused  a follow-up cannot stand (follow_details says why; its queue's
--               table and column in follow_sources and follow_columns): nothing
--               was settled, put or counted. The caller decides what its task's
--               attempt becomes, and asks again without it
--   woken       queues that have something to claim now; freed: those where it
--               may stand anywhere in the order, and not by its new time
--   p_own       the transaction is this call's own: settled at once
--   p_in_turn   a task is named twice, or a follow-up's id by two tasks: one
--               settlement after the other, each with its follow-ups
--   p_results   what handlers returned for those that are done
--   p_patience  so many milliseconds somebody else's open transaction is waited
--               for that settles a task of the same lease or put a follow-up's
--               key; then nothing is settled
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
    p_kept integer DEFAULT 10, p_now timestamptz DEFAULT NULL, p_in_turn boolean DEFAULT false,
    f_settings text[] DEFAULT NULL, p_results bytea[] DEFAULT NULL,
    p_result_encodings smallint[] DEFAULT NULL,
    OUT answers smallint[], OUT became smallint[], OUT run_ats timestamptz[], OUT woken text[],
    OUT follow_ups smallint[], OUT follow_ids bigint[], OUT follow_run_ats timestamptz[],
    OUT follow_sources text[], OUT follow_details text[], OUT is_refused boolean,
    OUT follow_columns text[], OUT freed text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_now     timestamptz := coalesce(p_now, clock_timestamp());
    v_ats     timestamptz[] := p_ats;
    v_numbers integer[];
    v_freed   integer[];
    v_some    record;
    v_put     record;
    v_set     text;
BEGIN
    is_refused := false;
    IF p_patience IS NOT NULL THEN
        v_set := set_config('lock_timeout', p_patience::text, true);
    END IF;
    IF p_own AND EXISTS (SELECT 1 FROM gristmill.queue q WHERE q.relaxed)
       AND f_of IS NULL AND NOT EXISTS (
           SELECT 1 FROM gristmill.lease l,
                  LATERAL (SELECT x.relaxed FROM gristmill.queue x
                            WHERE x.number = l.queue OFFSET 0) q
            WHERE l.token = ANY (p_tokens) AND NOT q.relaxed) THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF f_of IS NOT NULL THEN
        SELECT * INTO v_some FROM gristmill.follow_up_faults(v_now, f_of, f_queues,
            f_payloads, f_encodings, f_keys, f_caller_ids);
        IF v_some.faults IS NOT NULL THEN
            is_refused := true;
            follow_ids := v_some.firsts;
            follow_details := v_some.faults;
            follow_sources := v_some.tables;
            follow_columns := v_some.columns;
            RETURN;
        END IF;
    END IF;
    IF p_in_turn AND cardinality(p_ids) > 1 THEN
        SELECT * INTO v_some FROM gristmill.settle_in_turn(p_tokens, p_ids, p_outcomes, p_errors,
            p_ats, p_delays, p_started, f_of, f_queues, f_payloads, f_encodings, f_keys, f_groups,
            f_sources, f_priorities, f_run_ats, f_delays, f_caller_ids, f_headers, p_own, p_free,
            p_kept, v_now, p_now, f_settings, p_results, p_result_encodings);
        answers := v_some.answers;
        became := v_some.became;
        run_ats := v_some.run_ats;
        woken := v_some.woken;
        freed := v_some.freed;
        follow_ups := v_some.follow_ups;
        follow_ids := v_some.follow_ids;
        follow_run_ats := v_some.follow_run_ats;
        follow_sources := v_some.follow_sources;
        follow_details := v_some.follow_details;
        follow_columns := v_some.follow_columns;
        is_refused := v_some.is_refused;
        RETURN;
    END IF;
    IF array_remove(p_delays, NULL) <> '{}' THEN
        v_ats := ARRAY(SELECT coalesce(u.at, gristmill.later(v_now, gristmill.span(u.delay)))
                         FROM unnest(p_ids, p_ats, p_delays) WITH ORDINALITY
                           AS u (id, at, delay, nth) ORDER BY u.nth);
    END IF;
    -- A statement that is its own transaction has nothing to wait for either.
    IF p_own OR transaction_timestamp() = statement_timestamp() THEN
        SELECT * INTO v_some FROM gristmill.settle_now(p_tokens, p_ids, p_outcomes, p_errors,
            v_ats, p_started, p_free, p_kept, v_now);
        IF p_results IS NOT NULL THEN
            PERFORM gristmill.keep_results(p_ids, p_results, p_result_encodings, v_some.answers,
                v_some.became, v_now);
        END IF;
    ELSE
        SELECT * INTO v_some FROM gristmill.settle_later(p_tokens, p_ids, p_outcomes, p_errors,
            v_ats, p_started, p_free, p_kept, v_now, p_now);
        IF p_results IS NOT NULL THEN
            UPDATE gristmill.settling s SET result = r.value, result_encoding = r.encoding
              FROM unnest(p_ids, p_tokens, p_results, p_result_encodings)
                AS r (id, token, value, encoding)
             WHERE s.id = r.id AND s.token = r.token AND r.value IS NOT NULL;
        END IF;
    END IF;
    answers := v_some.answers;
    became := v_some.became;
    run_ats := v_some.run_ats;
    v_numbers := v_some.woken;
    v_freed := v_some.freed;
    IF f_of IS NOT NULL THEN
        follow_ups := array_fill(NULL::smallint, ARRAY[cardinality(f_of)]);
        follow_ids := array_fill(NULL::bigint, ARRAY[cardinality(f_of)]);
        follow_run_ats := array_fill(NULL::timestamptz, ARRAY[cardinality(f_of)]);
        follow_sources := array_fill(NULL::text, ARRAY[cardinality(f_of)]);
        follow_details := array_fill(NULL::text, ARRAY[cardinality(f_of)]);
        FOR v_some IN
            SELECT f.queue, f.of > 0 AS is_put,
                   array_agg(f.nth::integer ORDER BY f.nth) AS nths,
                   array_agg(f.payload ORDER BY f.nth) AS payloads,
                   array_agg(f.encoding ORDER BY f.nth)
                       FILTER (WHERE f_encodings IS NOT NULL) AS encodings,
                   array_agg(f.key ORDER BY f.nth) FILTER (WHERE f_keys IS NOT NULL) AS keys,
                   array_agg(f.grp ORDER BY f.nth) FILTER (WHERE f_groups IS NOT NULL) AS groups,
                   array_agg(f.source ORDER BY f.nth)
                       FILTER (WHERE f_sources IS NOT NULL) AS sources,
                   array_agg(f.priority ORDER BY f.nth)
                       FILTER (WHERE f_priorities IS NOT NULL) AS priorities,
                   array_agg(f.run_at ORDER BY f.nth)
                       FILTER (WHERE f_run_ats IS NOT NULL) AS run_ats,
                   array_agg(f.delay ORDER BY f.nth) FILTER (WHERE f_delays IS NOT NULL) AS delays,
                   CASE WHEN count(f.caller_id) > 0 THEN array_agg(f.caller_id ORDER BY f.nth) END
                       AS caller_ids,
                   array_agg(f.headers ORDER BY f.nth)
                       FILTER (WHERE f_headers IS NOT NULL) AS headers,
                   array_agg(f.settings ORDER BY f.nth)
                       FILTER (WHERE f_settings IS NOT NULL) AS settings
              FROM unnest(f_of, f_queues, f_payloads, f_encodings, f_keys, f_groups, f_sources,
                          f_priorities, f_run_ats, f_delays, f_caller_ids, f_headers, f_settings)
                   WITH ORDINALITY AS f (of, queue, payload, encoding, key, grp, source, priority,
                                         run_at, delay, caller_id, headers, settings, nth)
             WHERE coalesce(answers[abs(f.of)], 0) = 0
             GROUP BY f.queue, f.of > 0 ORDER BY f.queue COLLATE "C"
        LOOP
            IF NOT v_some.is_put THEN
                INSERT INTO gristmill.delta (at, queue, refused)
                SELECT v_now, q.number, cardinality(v_some.nths) FROM gristmill.queue q
                 WHERE q.name = v_some.queue;
                CONTINUE;
            END IF;
            SELECT * INTO v_put FROM gristmill.put_many(v_some.queue, v_some.payloads,
                v_some.encodings, v_some.keys, v_some.groups, v_some.sources, v_some.priorities,
                v_some.run_ats, v_some.delays, v_some.caller_ids, v_some.headers,
                p_outside => false, p_inside => NOT p_own, p_now => v_now,
                p_settings => v_some.settings);
            IF v_put.outcomes IS NULL THEN
                -- The common answer: all of them stand.
                FOR i IN 1..cardinality(v_some.nths) LOOP
                    follow_ups[v_some.nths[i]] := 0;
                    follow_ids[v_some.nths[i]] := v_put.ids[i];
                END LOOP;
            ELSE
                FOR i IN 1..cardinality(v_some.nths) LOOP
                    follow_ups[v_some.nths[i]] := v_put.outcomes[i];
                    follow_ids[v_some.nths[i]] := v_put.ids[i];
                    follow_run_ats[v_some.nths[i]] := v_put.run_ats[i];
                    follow_sources[v_some.nths[i]] := v_put.sources[i];
                END LOOP;
                IF 3 = ANY (v_put.outcomes) THEN
                    -- It was fine a moment ago: somebody else's put was quicker.
                    RAISE EXCEPTION 'a follow-up was refused that could stand: repeat it'
                        USING ERRCODE = 'serialization_failure';
                END IF;
            END IF;
            woken := woken || v_some.queue;
            freed := freed || v_some.queue;
        END LOOP;
    END IF;
    IF v_freed IS NOT NULL THEN
        freed := freed || ARRAY(SELECT q.name::text FROM gristmill.queue q
                                 WHERE q.number = ANY (v_freed));
    END IF;
    IF v_numbers IS NOT NULL THEN
        woken := woken || ARRAY(SELECT q.name::text FROM gristmill.queue q
                                 WHERE q.number = ANY (v_numbers));
    END IF;
END
$$;

-- Settles one after the other, each with its follow-ups, all or nothing. When the
-- follow-ups of one cannot stand, nothing does, and its faults are told.
CREATE FUNCTION gristmill.settle_in_turn(
    p_tokens uuid[], p_ids bigint[], p_outcomes text[], p_errors text[], p_ats timestamptz[],
    p_delays bigint[], p_started boolean[], f_of integer[], f_queues text[], f_payloads bytea[],
    f_encodings smallint[], f_keys text[], f_groups text[], f_sources text[],
    f_priorities smallint[], f_run_ats timestamptz[], f_delays bigint[], f_caller_ids text[],
    f_headers text[], p_own boolean, p_free integer, p_kept integer, p_now timestamptz,
    p_clock timestamptz, f_settings text[], p_results bytea[], p_result_encodings smallint[],
    OUT answers smallint[], OUT became smallint[], OUT run_ats timestamptz[], OUT woken text[],
    OUT follow_ups smallint[], OUT follow_ids bigint[], OUT follow_run_ats timestamptz[],
    OUT follow_sources text[], OUT follow_details text[], OUT is_refused boolean,
    OUT follow_columns text[], OUT freed text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_one  record;
    v_js   integer[];
    v_from integer;
    v_to   integer;
BEGIN
    is_refused := false;
    BEGIN
        answers := array_fill(0::smallint, ARRAY[cardinality(p_ids)]);
        became := array_fill(0::smallint, ARRAY[cardinality(p_ids)]);
        run_ats := array_fill(NULL::timestamptz, ARRAY[cardinality(p_ids)]);
        follow_ups := array_fill(NULL::smallint, ARRAY[coalesce(cardinality(f_of), 0)]);
        follow_ids := array_fill(NULL::bigint, ARRAY[coalesce(cardinality(f_of), 0)]);
        follow_run_ats := array_fill(NULL::timestamptz, ARRAY[coalesce(cardinality(f_of), 0)]);
        follow_sources := array_fill(NULL::text, ARRAY[coalesce(cardinality(f_of), 0)]);
        follow_details := array_fill(NULL::text, ARRAY[coalesce(cardinality(f_of), 0)]);
        follow_columns := array_fill(NULL::text, ARRAY[coalesce(cardinality(f_of), 0)]);
        FOR i IN 1..cardinality(p_ids) LOOP
            -- The follow-ups of one settlement stand side by side.
            v_js := array_positions(f_of, i) || array_positions(f_of, -i);
            v_from := v_js[1];
            v_to := v_js[cardinality(v_js)];
            SELECT * INTO v_one FROM gristmill.settle_many(p_tokens[i:i], p_ids[i:i],
                p_outcomes[i:i], p_errors[i:i], p_ats[i:i], p_delays[i:i], p_started[i:i],
                CASE WHEN v_from IS NOT NULL
                     THEN array_fill(sign(f_of[v_from])::integer, ARRAY[v_to - v_from + 1]) END,
                f_queues[v_from:v_to], f_payloads[v_from:v_to], f_encodings[v_from:v_to],
                f_keys[v_from:v_to], f_groups[v_from:v_to], f_sources[v_from:v_to],
                f_priorities[v_from:v_to], f_run_ats[v_from:v_to], f_delays[v_from:v_to],
                f_caller_ids[v_from:v_to], f_headers[v_from:v_to], p_own, NULL, p_free, p_kept,
                coalesce(p_clock, p_now), f_settings => f_settings[v_from:v_to],
                p_results => p_results[i:i], p_result_encodings => p_result_encodings[i:i]);
            FOR j IN coalesce(v_from, 1)..coalesce(v_to, 0) LOOP
                follow_ups[j] := v_one.follow_ups[j - v_from + 1];
                follow_ids[j] := v_one.follow_ids[j - v_from + 1];
                follow_run_ats[j] := v_one.follow_run_ats[j - v_from + 1];
                follow_sources[j] := v_one.follow_sources[j - v_from + 1];
                follow_details[j] := v_one.follow_details[j - v_from + 1];
                follow_columns[j] := v_one.follow_columns[j - v_from + 1];
            END LOOP;
            IF v_one.is_refused THEN
                is_refused := true;
                RAISE EXCEPTION USING ERRCODE = 'GM001';
            END IF;
            answers[i] := coalesce(v_one.answers[1], 0);
            became[i] := CASE WHEN v_one.answers IS NULL THEN 0 ELSE v_one.became[1] END;
            run_ats[i] := v_one.run_ats[1];
            woken := woken || v_one.woken;
            freed := freed || v_one.freed;
        END LOOP;
    EXCEPTION WHEN SQLSTATE 'GM001' THEN
        NULL;
    END;
END
$$;

-- How far the tasks of a lease are, with the news about some of them (position in the
-- lists, rising) and without what is not open any more.
CREATE FUNCTION gristmill.with_news(
    p_before jsonb, p_open bigint[], p_news integer[], p_ids bigint[], p_dones bigint[],
    p_totals bigint[], p_messages text[], p_now timestamptz
) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT jsonb_object_agg(s.id, s.said ORDER BY s.position)
              FROM (SELECT b.key AS id, b.value AS said, 0 AS position
                      FROM jsonb_each(CASE jsonb_typeof(p_before) WHEN 'object'
                                           THEN p_before ELSE '{}' END) b
                    UNION ALL
                    SELECT p_ids[n]::text, jsonb_strip_nulls(jsonb_build_object(
                               'done', p_dones[n], 'total', p_totals[n],
                               'message', nullif(p_messages[n], ''), 'at', p_now)), n
                      FROM unnest(p_news) n) s
             WHERE s.id = ANY (p_open::text[]));
END
$$;

-- Prolongs leases, each for so many microseconds (null: for as long as it was made
-- for). A lease whose time is over but whose tasks nobody took is
-- prolonged like any other. Answers in order; extended is false for a lost one.
-- How far tasks are (p_of: under which token) is kept beside the deadline, of those
-- that are open.
-- Nobody holds a deadline for long: settlements in open transactions do not, and
-- who takes tasks back is done in a moment.
CREATE FUNCTION gristmill.extend_many(
    p_tokens uuid[], p_leases bigint[], p_of uuid[] DEFAULT NULL, p_ids bigint[] DEFAULT NULL,
    p_dones bigint[] DEFAULT NULL, p_totals bigint[] DEFAULT NULL,
    p_messages text[] DEFAULT NULL, p_now timestamptz DEFAULT NULL
) RETURNS TABLE (extended boolean, cancelled bigint[], lost bigint[])
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    -- In the order of tokens, so that two of these wait in one direction.
    PERFORM 1 FROM gristmill.deadline d WHERE d.token = ANY (p_tokens)
      ORDER BY d.token FOR UPDATE;
    IF gristmill.span((SELECT min(l) FROM unnest(p_leases) l)) < least(
           gristmill.longest_quiet(),
           (SELECT min(d.lease) FROM gristmill.deadline d WHERE d.token = ANY (p_tokens)))
    THEN
        -- It may run out before the others look again by themselves.
        PERFORM pg_notify('gristmill.wake', '!');
    END IF;
    IF cardinality(p_of) > 0 THEN
        UPDATE gristmill.deadline d
           SET progress = gristmill.with_news(d.progress, l.open, g.news, p_ids, p_dones,
                   p_totals, p_messages, v_now)
          FROM (SELECT u.token, array_agg(u.position::integer ORDER BY u.position) AS news
                  FROM unnest(p_of) WITH ORDINALITY AS u (token, position)
                 GROUP BY u.token) g
          JOIN gristmill.lease l ON l.token = g.token
         WHERE d.token = g.token;
    END IF;
    RETURN QUERY
    WITH prolonged AS (
        UPDATE gristmill.deadline d
           SET until = gristmill.later(v_now, coalesce(gristmill.span(g.lease), d.lease)),
               lease = coalesce(gristmill.span(g.lease), d.lease)
          -- Of a token that is named twice, the last word counts.
          FROM (SELECT DISTINCT ON (u.token) u.token, u.lease
                  FROM unnest(p_tokens, p_leases) WITH ORDINALITY AS u (token, lease, position)
                 ORDER BY u.token, u.position DESC) g
         WHERE d.token = g.token
        RETURNING d.token
    )
    SELECT l.token IS NOT NULL,
           ARRAY(SELECT unnest(l.cancelled) INTERSECT SELECT unnest(l.open) ORDER BY 1),
           coalesce(l.lost, '{}')
      FROM unnest(p_tokens) WITH ORDINALITY AS g (token, position)
      LEFT JOIN prolonged p ON p.token = g.token
      LEFT JOIN LATERAL (SELECT x.* FROM gristmill.lease x WHERE x.token = p.token LIMIT 1) l
             ON true
     ORDER BY g.position;
END
$$;

-- Keeps what handlers want their tasks' next attempts to have, in place of what was
-- kept before; nothing at all forgets it. One answer each, in order: 0 kept, 2 gone,
-- 3 lease lost. The lease is held meanwhile, so that whoever takes it away comes before
-- or after. Its row is written only the first time: settlements in transactions that
-- began before would fail.
CREATE FUNCTION gristmill.checkpoint_many(
    p_tokens uuid[], p_ids bigint[], p_states bytea[], p_own boolean DEFAULT false
) RETURNS smallint[]
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_answers smallint[] := array_fill(0::smallint, ARRAY[cardinality(p_ids)]);
    v_one     record;
    v_lease   record;
BEGIN
    IF p_own AND NOT EXISTS (
        SELECT 1 FROM gristmill.lease l,
               LATERAL (SELECT x.relaxed FROM gristmill.queue x
                         WHERE x.number = l.queue OFFSET 0) q
         WHERE l.token = ANY (p_tokens) AND NOT q.relaxed) THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    FOR v_one IN
        -- In the order of tokens, as settlements are.
        SELECT u.token, u.id, u.state, u.nth::integer AS nth
          FROM unnest(p_tokens, p_ids, p_states) WITH ORDINALITY AS u (token, id, state, nth)
         ORDER BY u.token, u.nth
    LOOP
        SELECT l.kept INTO v_lease FROM gristmill.lease l
         WHERE l.token = v_one.token AND v_one.id = ANY (l.open) FOR UPDATE;
        IF NOT FOUND THEN
            v_answers[v_one.nth] := CASE WHEN EXISTS (
                SELECT 1 FROM gristmill.standing(v_one.id)) THEN 3 ELSE 2 END;
            CONTINUE;
        END IF;
        IF v_one.state = '' THEN
            DELETE FROM gristmill.checkpoint c WHERE c.id = v_one.id;
            CONTINUE;
        END IF;
        IF v_lease.kept IS NULL THEN
            UPDATE gristmill.lease l SET kept = true WHERE l.token = v_one.token;
        END IF;
        INSERT INTO gristmill.checkpoint (id, state) VALUES (v_one.id, v_one.state)
        ON CONFLICT (id) DO UPDATE SET state = excluded.state;
    END LOOP;
    RETURN v_answers;
END
$$;
