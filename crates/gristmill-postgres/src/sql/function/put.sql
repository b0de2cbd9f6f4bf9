-- Putting. put_many is the one implementation; `enqueue` (the SQL surface) and
-- the Rust store call it. It runs in whatever transaction calls it and makes
-- nobody wait, except another put of an equal key.
--
-- In a transaction of the call's own (p_own), *duplicate* is the whole truth: the
-- task that stood for it was not claimed yet, so its run begins after whatever
-- the caller did before. In the caller's transaction it is not, for nobody sees
-- the caller's changes before they are committed: there the put leaves a marker
-- (table `marker`).

-- The answer to a put that an existing task stands for.
CREATE FUNCTION gristmill.duplicate_of(p_id bigint) RETURNS gristmill.put_answer
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_answer gristmill.put_answer;
BEGIN
    v_answer := ROW(1, p_id, NULL, NULL, NULL)::gristmill.put_answer;
    SELECT t.run_at, t.source INTO v_answer.run_at, v_answer.source
      FROM gristmill.task t WHERE t.id = p_id;
    IF NOT FOUND THEN
        SELECT t.run_at, t.source INTO v_answer.run_at, v_answer.source
          FROM gristmill.lease l, unnest(l.tasks) t
         WHERE p_id = ANY (l.open) AND t.id = p_id;
    END IF;
    IF NOT FOUND THEN
        SELECT t.run_at, t.source INTO v_answer.run_at, v_answer.source
          FROM gristmill.failed t WHERE t.id = p_id;
    END IF;
    RETURN v_answer;
END
$$;

-- Pending tasks of a queue, from the kept counts.
CREATE FUNCTION gristmill.pending(p_queue integer) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT t.ready + t.delayed + t.blocked FROM gristmill.total t WHERE t.queue = p_queue)
         + (SELECT coalesce(sum(coalesce(d.ready, 0) + coalesce(d.delayed, 0)
                              + coalesce(d.blocked, 0)), 0)
              FROM gristmill.delta d WHERE d.queue = p_queue);
END
$$;

-- Gives a caller's id back that this put had taken; a memory whose time was
-- over stands again until the sweep.
CREATE FUNCTION gristmill.unremember(p_queue integer, p_id text, p_before gristmill.put_id)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_before.id IS NULL THEN
        DELETE FROM gristmill.put_id i WHERE i.queue = p_queue AND i.id = p_id;
    ELSE
        UPDATE gristmill.put_id i
           SET task = p_before.task, digest = p_before.digest, until = p_before.until
         WHERE i.queue = p_queue AND i.id = p_id;
    END IF;
END
$$;

-- The same of a key's window: gives back what this put had taken.
CREATE FUNCTION gristmill.untake_window(
    p_queue integer, p_key text, p_before gristmill.key_window
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_before.key IS NULL THEN
        DELETE FROM gristmill.key_window w WHERE w.queue = p_queue AND w.key = p_key;
    ELSE
        UPDATE gristmill.key_window w SET task = p_before.task, until = p_before.until
         WHERE w.queue = p_queue AND w.key = p_key;
    END IF;
END
$$;

-- Puts one task, whatever it carries. p_room: how many more the queue takes,
-- null without limit. p_id is the id it gets, the next one where nothing is said;
-- negative ones serve a rehearsal. p_inside: the transaction is the caller's.
CREATE FUNCTION gristmill.put_one(
    p_queue gristmill.queue, p_payload bytea, p_encoding smallint, p_key text, p_group text,
    p_source text, p_priority smallint, p_run_at timestamptz, p_said boolean, p_caller_id text,
    p_headers jsonb, p_settings jsonb, p_room bigint, p_id bigint, p_inside boolean, p_now timestamptz
) RETURNS gristmill.put_answer
LANGUAGE plpgsql AS $$
DECLARE
    v_answer   gristmill.put_answer;
    v_digest   bytea;
    v_known    gristmill.put_id;
    v_before   gristmill.put_id;
    v_standing gristmill.task;
    v_flight   bigint;
    v_leaving  boolean;
    v_run_at   timestamptz;
    v_delayed  boolean;
    v_window   gristmill.key_window;
    v_taken    boolean := false;
    v_id       bigint := p_id;
BEGIN
    IF p_caller_id IS NOT NULL THEN
        -- The id is taken first: of two puts at once, the unique index lets
        -- one through and makes the other wait for its end.
        v_digest := gristmill.digest(p_payload, p_encoding);
        SELECT * INTO v_before FROM gristmill.put_id i
         WHERE i.queue = p_queue.number AND i.id = p_caller_id;
        INSERT INTO gristmill.put_id AS i (queue, id, task, digest, until)
        VALUES (p_queue.number, p_caller_id, NULL, v_digest,
                gristmill.later(p_now, p_queue.id_window))
        ON CONFLICT (queue, id) DO UPDATE
           SET task = NULL, digest = excluded.digest, until = excluded.until
         WHERE i.until <= p_now
        RETURNING * INTO v_known;
        IF NOT FOUND THEN
            SELECT * INTO v_known FROM gristmill.put_id i
             WHERE i.queue = p_queue.number AND i.id = p_caller_id;
            IF v_known.digest = v_digest THEN
                RETURN gristmill.duplicate_of(v_known.task);
            END IF;
            RETURN ROW(3, v_known.task, NULL, NULL, 'id_reused')::gristmill.put_answer;
        END IF;
    END IF;
    LOOP
        v_standing := NULL;
        v_flight := NULL;
        IF p_key IS NOT NULL THEN
            SELECT * INTO v_standing FROM gristmill.task t
             WHERE t.queue = p_queue.number AND t.key = p_key AND NOT t.in_flight;
            SELECT f.id INTO v_flight FROM gristmill.flight f
             WHERE f.queue = p_queue.number AND f.key = p_key;
            -- This transaction settles it as it commits: it stands for nothing.
            v_leaving := p_inside AND v_flight IS NOT NULL AND EXISTS (
                SELECT 1 FROM gristmill.settling s WHERE s.id = v_flight);
        END IF;
        IF v_standing.id IS NOT NULL AND NOT p_queue.unique_active
           AND p_queue.on_duplicate <> 'skip' THEN
            v_run_at := CASE
                WHEN p_queue.on_duplicate = 'postpone' THEN greatest(v_standing.run_at, least(
                    p_run_at, gristmill.later(v_standing.created_at, coalesce(
                        p_queue.postpone_max, greatest(p_run_at - p_now, interval '0') * 10))))
                WHEN p_said THEN p_run_at
                ELSE v_standing.run_at END;
            v_delayed := NOT v_standing.blocked AND v_run_at > p_now;
            UPDATE gristmill.task t
               SET payload = p_payload, encoding = p_encoding, headers = p_headers,
                   settings = p_settings, priority = least(t.priority, p_priority), run_at = v_run_at, delayed = v_delayed
             WHERE t.id = v_standing.id AND NOT t.in_flight AND t.run_at = v_standing.run_at
               AND t.blocked = v_standing.blocked;
            -- Claimed or moved by somebody meanwhile: look again.
            CONTINUE WHEN NOT FOUND;
            PERFORM gristmill.recount(v_standing, v_run_at, v_delayed, p_now);
            IF v_standing.claims > 0 THEN
                -- It was kept about other data.
                PERFORM gristmill.forget_kept(ARRAY[v_standing.id]);
            END IF;
            v_answer := ROW(2, v_standing.id, NULL, NULL, NULL)::gristmill.put_answer;
            EXIT;
        END IF;
        IF v_standing.id IS NOT NULL
           OR (p_queue.unique_active AND v_flight IS NOT NULL AND NOT v_leaving) THEN
            IF v_standing.id IS NOT NULL THEN
                v_answer := ROW(1, v_standing.id, v_standing.run_at, v_standing.source, NULL)
                    ::gristmill.put_answer;
            ELSE
                v_answer := gristmill.duplicate_of(v_flight);
                -- Ended between the two looks: nothing stands any more.
                CONTINUE WHEN v_answer.run_at IS NULL AND NOT EXISTS (
                    SELECT 1 FROM gristmill.flight f
                     WHERE f.queue = p_queue.number AND f.key = p_key);
            END IF;
            IF v_taken THEN
                PERFORM gristmill.untake_window(p_queue.number, p_key, v_window);
            END IF;
            IF p_caller_id IS NOT NULL THEN
                -- The repeat is answered with the task that stood for it.
                UPDATE gristmill.put_id i SET task = v_answer.id
                 WHERE i.queue = p_queue.number AND i.id = p_caller_id;
            END IF;
            IF p_inside AND v_answer.id > 0 THEN
                PERFORM gristmill.stands_still(v_standing.id, p_queue.number, p_key);
                INSERT INTO gristmill.marker (queue, key, in_flight, priority, encoding, run_at,
                    grp, source, headers, settings, payload)
                VALUES (p_queue.number, p_key, v_standing.id IS NULL, p_priority, p_encoding,
                    p_run_at, p_group, p_source, p_headers, p_settings, p_payload);
            END IF;
            RETURN v_answer;
        END IF;
        IF p_key IS NOT NULL AND p_queue.unique_for IS NOT NULL AND NOT v_taken THEN
            SELECT * INTO v_window FROM gristmill.key_window w
             WHERE w.queue = p_queue.number AND w.key = p_key;
            IF v_window.until > p_now THEN
                -- A throttle, not a promise of a run: no marker.
                v_answer := gristmill.duplicate_of(v_window.task);
                EXIT;
            END IF;
        END IF;
        IF p_room <= 0 THEN
            IF p_caller_id IS NOT NULL THEN
                PERFORM gristmill.unremember(p_queue.number, p_caller_id, v_before);
            END IF;
            RETURN ROW(3, NULL, NULL, NULL, 'queue_full')::gristmill.put_answer;
        END IF;
        IF p_key IS NOT NULL AND p_queue.unique_for IS NOT NULL AND NOT v_taken THEN
            -- Taken before the task: of two puts at once one is let through and makes the
            -- other wait for its end, also when the task has run by then. In two
            -- statements, so that a row is locked only where it is changed.
            v_id := coalesce(v_id, nextval('gristmill.task_id'));
            IF v_window.key IS NULL THEN
                INSERT INTO gristmill.key_window (queue, key, task, until)
                VALUES (p_queue.number, p_key, v_id, gristmill.later(p_now, p_queue.unique_for))
                ON CONFLICT (queue, key) DO NOTHING;
            ELSE
                UPDATE gristmill.key_window w
                   SET task = v_id, until = gristmill.later(p_now, p_queue.unique_for)
                 WHERE w.queue = p_queue.number AND w.key = p_key AND w.until <= p_now;
            END IF;
            CONTINUE WHEN NOT FOUND;
            v_taken := true;
        END IF;
        v_delayed := v_flight IS NULL AND p_run_at > p_now;
        INSERT INTO gristmill.task (id, queue, priority, run_at, created_at, blocked, delayed,
            slotted, unique_active, encoding, key, grp, source, headers, settings, payload)
        VALUES (coalesce(v_id, nextval('gristmill.task_id')), p_queue.number, p_priority,
            p_run_at, p_now, v_flight IS NOT NULL, v_delayed, p_queue.grouped,
            p_queue.unique_active, p_encoding, p_key, p_group, p_source, p_headers,
            p_settings, p_payload)
        ON CONFLICT (queue, key) WHERE key IS NOT NULL AND NOT in_flight DO NOTHING
        RETURNING 0, id, NULL, NULL, NULL INTO v_answer;
        CONTINUE WHEN NOT FOUND;
        IF p_key IS NOT NULL AND p_queue.unique_active AND NOT coalesce(v_leaving, false)
           AND gristmill.in_flight(p_queue.number, p_key) THEN
            -- The task that stood here was claimed while this put waited.
            DELETE FROM gristmill.task t WHERE t.id = v_answer.id;
            CONTINUE;
        END IF;
        IF v_delayed THEN
            INSERT INTO gristmill.delayed (run_at, id, queue)
            VALUES (p_run_at, v_answer.id, p_queue.number);
        END IF;
        INSERT INTO gristmill.delta (at, queue, ready, delayed, blocked)
        VALUES (p_now, p_queue.number, (v_flight IS NULL AND NOT v_delayed)::integer,
                v_delayed::integer, (v_flight IS NOT NULL)::integer);
        EXIT;
    END LOOP;
    IF p_caller_id IS NOT NULL THEN
        UPDATE gristmill.put_id i SET task = v_answer.id
         WHERE i.queue = p_queue.number AND i.id = p_caller_id;
    END IF;
    RETURN v_answer;
END
$$;

-- Whether a key is in flight, as seen after the caller's own insert. Under
-- REPEATABLE READ a plain look would be as old as the transaction, but a unique
-- index sees everything: an insert meets a row that is there, visible or not.
CREATE FUNCTION gristmill.in_flight(p_queue integer, p_key text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM gristmill.flight f WHERE f.queue = p_queue AND f.key = p_key) THEN
        RETURN true;
    END IF;
    IF current_setting('transaction_isolation') = 'read committed' THEN
        RETURN false;
    END IF;
    BEGIN
        INSERT INTO gristmill.flight (queue, key, id) VALUES (p_queue, p_key, 0);
        -- Taken back at once: claims of this key must not wait for the caller.
        RAISE EXCEPTION USING ERRCODE = 'GM001';
    EXCEPTION
        WHEN SQLSTATE 'GM001' THEN
            RETURN false;
        WHEN unique_violation THEN
            RAISE EXCEPTION 'the key was claimed after this transaction began: repeat it'
                USING ERRCODE = 'serialization_failure';
    END;
END
$$;

-- Under REPEATABLE READ, what stands for a duplicate is looked up as it was when
-- the transaction began. A lock sees the row as it is now: where it is gone the
-- server answers with a serialization failure, which is right, for there is no
-- true answer. Taken back at once, so that no claim passes the row by meanwhile.
CREATE FUNCTION gristmill.stands_still(p_id bigint, p_queue integer, p_key text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') = 'read committed' THEN
        RETURN;
    END IF;
    BEGIN
        IF p_id IS NOT NULL THEN
            PERFORM 1 FROM gristmill.task t WHERE t.id = p_id FOR KEY SHARE SKIP LOCKED;
        ELSE
            PERFORM 1 FROM gristmill.flight f WHERE f.queue = p_queue AND f.key = p_key
                FOR KEY SHARE SKIP LOCKED;
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'GM001';
    EXCEPTION WHEN SQLSTATE 'GM001' THEN
        NULL;
    END;
END
$$;

-- What a repeat of a caller's id is recognised by.
CREATE FUNCTION gristmill.digest(p_payload bytea, p_encoding smallint) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT substring(sha256(convert_to((ARRAY['json', 'msgpack', 'raw'])[p_encoding + 1], 'UTF8')
                            || decode('00', 'hex') || p_payload) FOR 16)
$$;

-- A pending task that was replaced changes its place among ready and delayed.
CREATE FUNCTION gristmill.recount(
    p_old gristmill.task, p_run_at timestamptz, p_delayed boolean, p_now timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_was_delayed boolean := false;
BEGIN
    IF p_old.blocked THEN
        RETURN;
    END IF;
    IF p_old.delayed THEN
        DELETE FROM gristmill.delayed d WHERE d.run_at = p_old.run_at AND d.id = p_old.id;
        v_was_delayed := FOUND;
    END IF;
    IF p_delayed THEN
        INSERT INTO gristmill.delayed (run_at, id, queue) VALUES (p_run_at, p_old.id, p_old.queue);
    END IF;
    IF v_was_delayed <> p_delayed THEN
        INSERT INTO gristmill.delta (at, queue, ready, delayed)
        VALUES (p_now, p_old.queue, v_was_delayed::integer - p_delayed::integer,
                p_delayed::integer - v_was_delayed::integer);
    END IF;
END
$$;

-- Which positions will be new tasks, in the order of the input, as far as one
-- look can tell: they get their ids, and the queue's room, in that order,
-- whatever the order in which they are then put. Entries: an id, 0 for what an
-- existing task stands for, -1 for what finds the queue full.
CREATE FUNCTION gristmill.foreseen(
    p_queue gristmill.queue, p_count integer, p_positions integer[], p_faults text[],
    p_keys text[], p_caller_ids text[], p_room bigint, p_inside boolean, p_now timestamptz
) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_ids   bigint[] := array_fill(0::bigint, ARRAY[p_count]);
    v_room  bigint := p_room;
    v_taken text[] := '{}';
    v_named text[] := '{}';
    i       integer;
BEGIN
    FOREACH i IN ARRAY p_positions LOOP
        CONTINUE WHEN p_faults[i] IS NOT NULL;
        IF p_caller_ids[i] IS NOT NULL THEN
            CONTINUE WHEN p_caller_ids[i] = ANY (v_named) OR EXISTS (
                SELECT 1 FROM gristmill.put_id k
                 WHERE k.queue = p_queue.number AND k.id = p_caller_ids[i] AND k.until > p_now);
            v_named := v_named || p_caller_ids[i];
        END IF;
        IF p_keys[i] IS NOT NULL THEN
            CONTINUE WHEN p_keys[i] = ANY (v_taken)
                OR (SELECT t.id FROM gristmill.task t
                     WHERE t.queue = p_queue.number AND t.key = p_keys[i]
                       AND NOT t.in_flight) IS NOT NULL
                OR (p_queue.unique_active
                    AND (SELECT f.id FROM gristmill.flight f
                          WHERE f.queue = p_queue.number AND f.key = p_keys[i]
                            AND NOT (p_inside AND EXISTS (SELECT 1 FROM gristmill.settling s
                                                           WHERE s.id = f.id))) IS NOT NULL)
                OR (p_queue.unique_for IS NOT NULL AND EXISTS (
                    SELECT 1 FROM gristmill.key_window w
                     WHERE w.queue = p_queue.number AND w.key = p_keys[i] AND w.until > p_now));
        END IF;
        IF v_room <= 0 THEN
            v_ids[i] := -1;
            CONTINUE;
        END IF;
        v_room := v_room - 1;
        v_ids[i] := nextval('gristmill.task_id');
        v_taken := v_taken || p_keys[i];
    END LOOP;
    RETURN v_ids;
END
$$;

-- Puts the tasks at these positions one by one (null: all of them), in the order
-- of keys: two puts of the same keys then wait for each other at the first one,
-- instead of crosswise. The answers are in the order of the positions.
CREATE FUNCTION gristmill.put_each(
    p_queue gristmill.queue, p_positions integer[], p_payloads bytea[], p_encodings smallint[],
    p_keys text[], p_groups text[], p_sources text[], p_priorities smallint[],
    p_run_ats timestamptz[], p_delays bigint[], p_caller_ids text[], p_headers text[],
    p_settings text[], p_room bigint, p_rehearsal boolean, p_inside boolean, p_now timestamptz
) RETURNS gristmill.put_answer[]
LANGUAGE plpgsql AS $$
DECLARE
    v_positions integer[] := coalesce(p_positions,
        ARRAY(SELECT generate_series(1, cardinality(p_payloads))));
    v_order     integer[];
    v_answers   gristmill.put_answer[] :=
        array_fill(NULL::gristmill.put_answer, ARRAY[cardinality(p_payloads)]);
    v_faults    text[];
    v_ids       bigint[];
    v_room      bigint := p_room;
    i           integer;
BEGIN
    v_order := v_positions;
    IF p_caller_ids IS NULL OR NOT EXISTS (
        SELECT 1 FROM unnest(p_caller_ids) c WHERE c IS NOT NULL GROUP BY c HAVING count(*) > 1)
    THEN
        -- Of an id that is named twice, the first one counts.
        v_order := ARRAY(SELECT x.i FROM unnest(v_positions) WITH ORDINALITY AS x (i, nth)
                          ORDER BY p_keys[x.i] COLLATE "C", x.nth);
        IF p_caller_ids IS NOT NULL AND p_queue.on_duplicate <> 'skip' THEN
            -- One that is known by its caller's id takes no key. It has its turn among
            -- those of the task it names, which another of this put may replace: so it
            -- tells of that task as it is at its place in the input.
            v_order := ARRAY(SELECT x.i FROM unnest(v_positions) WITH ORDINALITY AS x (i, nth)
                              ORDER BY coalesce(
                                  (SELECT t.key FROM gristmill.put_id d
                                     JOIN gristmill.task t ON t.id = d.task
                                    WHERE d.queue = p_queue.number AND d.id = p_caller_ids[x.i]
                                      AND d.until > p_now),
                                  p_keys[x.i]) COLLATE "C", x.nth);
        END IF;
    END IF;
    IF p_queue.bind_table IS NOT NULL THEN
        -- A task without a key among them is one without a subject.
        v_faults := gristmill.subject_faults(p_queue, ARRAY(
            SELECT k.key FROM unnest(p_payloads, p_keys) WITH ORDINALITY AS k (payload, key, nth)
             ORDER BY k.nth));
    END IF;
    IF NOT p_rehearsal THEN
        v_ids := gristmill.foreseen(p_queue, cardinality(p_payloads), v_positions, v_faults,
            p_keys, p_caller_ids, p_room, p_inside, p_now);
        v_room := p_room - (SELECT count(*) FROM unnest(v_ids) x WHERE x > 0);
    ELSE
        -- Nobody is kept waiting for longer than the rehearsal, so the order of
        -- the input will do, and the queue's room is given in it.
        v_order := v_positions;
    END IF;
    FOREACH i IN ARRAY v_order LOOP
        IF v_faults[i] IS NOT NULL THEN
            v_answers[i] := ROW(3, NULL, NULL, NULL, v_faults[i])::gristmill.put_answer;
        ELSIF v_ids[i] = -1 THEN
            v_answers[i] := ROW(3, NULL, NULL, NULL, 'queue_full')::gristmill.put_answer;
        ELSE
            v_answers[i] := gristmill.put_one(
                p_queue, p_payloads[i], coalesce(p_encodings[i], 0::smallint), p_keys[i],
                p_groups[i], p_sources[i], coalesce(p_priorities[i], 0::smallint),
                coalesce(p_run_ats[i], gristmill.later(p_now, gristmill.span(p_delays[i])), p_now),
                p_run_ats[i] IS NOT NULL OR p_delays[i] IS NOT NULL, p_caller_ids[i],
                p_headers[i]::jsonb, p_settings[i]::jsonb,
                CASE WHEN v_ids[i] > 0 THEN NULL ELSE v_room END,
                CASE WHEN p_rehearsal THEN -i::bigint ELSE nullif(v_ids[i], 0) END, p_inside,
                p_now);
            IF v_answers[i].outcome = 0 AND NOT coalesce(v_ids[i] > 0, false) THEN
                v_room := v_room - 1;
            END IF;
        END IF;
    END LOOP;
    RETURN ARRAY(SELECT v_answers[x.i] FROM unnest(v_positions) WITH ORDINALITY AS x (i, nth)
                  ORDER BY x.nth);
END
$$;

-- The answers of an atomic put that is taken back: faults stay, what was fine
-- is undone. A fault that names a neighbour of the rehearsal says which, counted
-- from 0: no task has the neighbour's number, and another may one day.
CREATE FUNCTION gristmill.undone(p_answers gristmill.put_answer[])
RETURNS gristmill.put_answer[]
LANGUAGE plpgsql AS $$
DECLARE
    v_answers gristmill.put_answer[] := p_answers;
BEGIN
    FOR i IN 1..cardinality(p_answers) LOOP
        IF p_answers[i].outcome IN (0, 2) THEN
            v_answers[i] := ROW(3, NULL, NULL, NULL, 'undone')::gristmill.put_answer;
        ELSIF p_answers[i].id < 0 THEN
            v_answers[i] := ROW(3, -p_answers[i].id - 1, NULL, NULL, 'twin')::gristmill.put_answer;
        END IF;
    END LOOP;
    RETURN v_answers;
END
$$;

-- Puts tasks on one queue. Every array but the payloads may be null (nothing
-- said for any task) and else has one entry a task. Answers as parallel
-- arrays; outcomes is null when every task was enqueued.
--   p_atomic    a duplicate or refused task undoes its neighbours
--   p_outside   ask for room; follow-ups of a settlement do not
--   p_own       the transaction is this call's own: a relaxed queue may commit
--               asynchronously
--   p_inside    it is the caller's; what nothing is said of is the caller's
--               unless it is this call's own
--   p_patience  so many milliseconds somebody else's open transaction is waited
--               for that put an equal key or id, or holds the subject's row;
--               then the put fails with lock_not_available. Null: without end
--   p_refused   tasks the caller refused before asking; with p_atomic nothing
--               is put then, and the answers say what would have been
CREATE FUNCTION gristmill.put_many(
    p_queue text, p_payloads bytea[], p_encodings smallint[] DEFAULT NULL,
    p_keys text[] DEFAULT NULL, p_groups text[] DEFAULT NULL, p_sources text[] DEFAULT NULL,
    p_priorities smallint[] DEFAULT NULL, p_run_ats timestamptz[] DEFAULT NULL,
    p_delays bigint[] DEFAULT NULL, p_caller_ids text[] DEFAULT NULL,
    p_headers text[] DEFAULT NULL, p_atomic boolean DEFAULT false,
    p_outside boolean DEFAULT true, p_own boolean DEFAULT false, p_patience integer DEFAULT NULL,
    p_refused integer DEFAULT 0, p_now timestamptz DEFAULT NULL, p_inside boolean DEFAULT NULL,
    p_settings text[] DEFAULT NULL,
    OUT is_known boolean, OUT outcomes smallint[], OUT ids bigint[], OUT run_ats timestamptz[],
    OUT sources text[], OUT details text[], OUT capacity bigint, OUT bind_table text,
    OUT bind_column text
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_now      timestamptz := coalesce(p_now, clock_timestamp());
    v_inside   boolean := coalesce(p_inside, NOT p_own);
    v_queue    gristmill.queue;
    v_answers  gristmill.put_answer[];
    v_again    gristmill.put_answer[];
    v_late     integer[];
    v_room     bigint;
    v_count    integer := cardinality(p_payloads);
    -- Nothing but payloads and keys was said: most puts. Their statements name
    -- fewer columns, and setting a statement up is most of a small put's cost.
    v_plain    boolean := num_nonnulls(p_encodings, p_groups, p_sources, p_priorities, p_run_ats,
                                       p_delays, p_headers, p_settings) = 0;
    -- So few that one statement for all of them is cheaper than another one for
    -- those without a key, although each is inserted with more care.
    v_few      boolean := p_keys IS NOT NULL AND cardinality(p_payloads) <= 32;
    v_inserted bigint[];
    v_entered  integer;
    v_ready    integer;
    v_delayed  integer;
    v_blocked  integer;
    v_set      text;
BEGIN
    SELECT * INTO v_queue FROM gristmill.queue q WHERE q.name = p_queue;
    is_known := FOUND;
    IF NOT is_known THEN
        RETURN;
    END IF;
    capacity := v_queue.capacity;
    bind_table := v_queue.bind_table;
    bind_column := v_queue.bind_column;
    IF v_count = 0 THEN
        INSERT INTO gristmill.delta (at, queue, refused)
        VALUES (v_now, v_queue.number, nullif(p_refused, 0));
        ids := '{}';
        RETURN;
    END IF;
    IF p_own AND v_queue.relaxed THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF p_patience IS NOT NULL AND (p_keys IS NOT NULL OR p_caller_ids IS NOT NULL
                                   OR v_queue.bind_table IS NOT NULL) THEN
        -- Nothing else of a put waits for anybody. Assigned, because PERFORM
        -- would set up a statement for it.
        v_set := set_config('lock_timeout', p_patience::text, true);
    END IF;
    IF p_outside AND v_queue.capacity IS NOT NULL THEN
        v_room := v_queue.capacity - gristmill.pending(v_queue.number);
    END IF;

    IF p_atomic AND (v_count > 1 OR p_refused > 0 OR p_caller_ids IS NOT NULL) THEN
        -- All or nothing: rehearsed first and taken back, then done. A
        -- rehearsal takes no ids, so that a refused put leaves no gap.
        FOR v_rehearsal IN REVERSE 1..0 LOOP
            BEGIN
                v_answers := gristmill.put_each(v_queue, NULL, p_payloads, p_encodings, p_keys,
                    p_groups, p_sources, p_priorities, p_run_ats, p_delays, p_caller_ids,
                    p_headers, p_settings, v_room, v_rehearsal = 1, v_inside, v_now);
                IF v_rehearsal = 1 OR EXISTS (SELECT 1 FROM unnest(v_answers) a
                                               WHERE a.outcome IN (1, 3)) THEN
                    RAISE EXCEPTION USING ERRCODE = 'GM001';
                END IF;
            EXCEPTION WHEN SQLSTATE 'GM001' THEN
                NULL;
            END;
            EXIT WHEN p_refused > 0 OR EXISTS (SELECT 1 FROM unnest(v_answers) a
                                                WHERE a.outcome IN (1, 3));
        END LOOP;
        IF p_refused > 0 OR EXISTS (SELECT 1 FROM unnest(v_answers) a
                                     WHERE a.outcome IN (1, 3)) THEN
            v_answers := gristmill.undone(v_answers);
        END IF;
    ELSIF p_caller_ids IS NOT NULL OR v_queue.bind_table IS NOT NULL
       OR v_room < v_count
       OR (p_keys IS NOT NULL AND (v_queue.on_duplicate <> 'skip' OR v_queue.unique_active
                                   OR v_queue.unique_for IS NOT NULL)) THEN
        v_answers := gristmill.put_each(v_queue, NULL, p_payloads, p_encodings, p_keys,
            p_groups, p_sources, p_priorities, p_run_ats, p_delays, p_caller_ids, p_headers,
            p_settings, v_room, false, v_inside, v_now);
    ELSE
        -- Many at once, in a few statements whatever their number. First the
        -- keys: which positions stand for nothing new? Usually none.
        IF p_keys IS NOT NULL AND (
            (SELECT count(k) > count(DISTINCT k) FROM unnest(p_keys) k)
            OR EXISTS (SELECT 1 FROM unnest(p_keys) k
                        WHERE (SELECT s.id FROM gristmill.task s
                                WHERE s.queue = v_queue.number AND s.key = k
                                  AND NOT s.in_flight) IS NOT NULL)
        ) THEN
            SELECT array_agg(k.position), array_agg(CASE
                       WHEN s.id IS NOT NULL
                       THEN ROW(1, s.id, s.run_at, s.source, NULL)::gristmill.put_answer
                       -- A repeat within this put: it stands at `first`.
                       ELSE ROW(1, -k.first, NULL, NULL, NULL)::gristmill.put_answer END)
              INTO v_late, v_again
              FROM (SELECT u.key, u.position::integer AS position,
                           min(u.position) OVER (PARTITION BY u.key) AS first
                      FROM unnest(p_keys) WITH ORDINALITY AS u (key, position)
                     WHERE u.key IS NOT NULL) k
              LEFT JOIN LATERAL (SELECT t.id, t.run_at, t.source FROM gristmill.task t
                                  WHERE t.queue = v_queue.number AND t.key = k.key
                                    AND NOT t.in_flight LIMIT 1) s ON true
             WHERE s.id IS NOT NULL OR k.first <> k.position;
            IF v_late IS NOT NULL THEN
                v_answers := array_fill(NULL::gristmill.put_answer, ARRAY[v_count]);
                FOR i IN 1..cardinality(v_late) LOOP
                    v_answers[v_late[i]] := v_again[i];
                    IF v_inside AND v_again[i].id > 0 THEN
                        PERFORM gristmill.stands_still(v_again[i].id, v_queue.number, NULL);
                    END IF;
                END LOOP;
                v_late := NULL;
                IF v_inside THEN
                    INSERT INTO gristmill.marker (queue, key, in_flight, priority, encoding,
                        run_at, grp, source, headers, settings, payload)
                    SELECT v_queue.number, g.key, false, coalesce(g.priority, 0),
                           coalesce(g.encoding, 0), coalesce(g.at,
                               gristmill.later(v_now, gristmill.span(g.delay)), v_now),
                           g.grp, g.source, g.headers::jsonb, g.settings::jsonb, g.payload
                      FROM unnest(p_payloads, p_encodings, p_keys, p_groups, p_sources,
                                  p_priorities, p_run_ats, p_delays, p_headers, p_settings,
                                  v_answers)
                        AS g (payload, encoding, key, grp, source, priority, at, delay, headers,
                              settings, outcome, id, stands_at, stands_for, detail)
                     WHERE g.outcome = 1 AND g.id > 0;
                END IF;
            END IF;
        END IF;
        IF v_answers IS NULL THEN
            ids := ARRAY(SELECT nextval('gristmill.task_id') FROM generate_series(1, v_count));
        ELSE
            ids := ARRAY(SELECT CASE WHEN v_answers[i] IS NULL
                                     THEN nextval('gristmill.task_id') END
                           FROM generate_series(1, v_count) i);
        END IF;
        -- Without a key nothing can be met: a plain insert, which is cheaper.
        v_delayed := 0;
        v_blocked := 0;
        IF v_plain AND v_few THEN
            v_entered := 0;
        ELSIF v_plain THEN
            INSERT INTO gristmill.task (id, queue, run_at, created_at, slotted, unique_active,
                payload)
            SELECT g.id, v_queue.number, v_now, v_now, v_queue.grouped,
                   v_queue.unique_active, g.payload
              FROM unnest(ids, p_payloads, p_keys) AS g (id, payload, key)
             WHERE g.key IS NULL;
            GET DIAGNOSTICS v_entered = ROW_COUNT;
        ELSE
            WITH entered AS (
                INSERT INTO gristmill.task (id, queue, priority, run_at, created_at, delayed,
                    slotted, unique_active, encoding, grp, source, headers, settings, payload)
                SELECT g.id, v_queue.number, coalesce(g.priority, 0), w.run_at, v_now,
                       w.run_at > v_now, v_queue.grouped, v_queue.unique_active,
                       coalesce(g.encoding, 0), g.grp, g.source, g.headers::jsonb, g.settings::jsonb,
                       g.payload
                  FROM unnest(ids, p_payloads, p_encodings, p_keys, p_groups, p_sources,
                              p_priorities, p_run_ats, p_delays, p_headers, p_settings)
                    AS g (id, payload, encoding, key, grp, source, priority, at, delay, headers,
                          settings)
                 CROSS JOIN LATERAL (SELECT coalesce(g.at,
                     gristmill.later(v_now, gristmill.span(g.delay)), v_now) AS run_at) w
                 WHERE g.key IS NULL
                RETURNING id, run_at, delayed
            ), waiting AS (
                INSERT INTO gristmill.delayed (run_at, id, queue)
                SELECT e.run_at, e.id, v_queue.number FROM entered e WHERE e.delayed
            )
            SELECT count(*), count(*) FILTER (WHERE e.delayed) INTO v_entered, v_delayed
              FROM entered e;
        END IF;
        IF p_keys IS NOT NULL AND v_plain THEN
            WITH entered AS (
                INSERT INTO gristmill.task (id, queue, run_at, created_at, blocked, slotted,
                    unique_active, key, payload)
                SELECT g.id, v_queue.number, v_now, v_now,
                       (SELECT f.id FROM gristmill.flight f
                         WHERE f.queue = v_queue.number AND f.key = g.key) IS NOT NULL,
                       v_queue.grouped, v_queue.unique_active, g.key, g.payload
                  FROM unnest(ids, p_payloads, p_keys) AS g (id, payload, key)
                 WHERE (g.key IS NOT NULL OR v_few) AND g.id IS NOT NULL
                 ORDER BY g.key COLLATE "C"
                ON CONFLICT (queue, key) WHERE key IS NOT NULL AND NOT in_flight DO NOTHING
                RETURNING id, blocked
            )
            SELECT array_agg(e.id), v_entered + count(*), count(*) FILTER (WHERE e.blocked)
              INTO v_inserted, v_entered, v_blocked
              FROM entered e;
        ELSIF p_keys IS NOT NULL THEN
            WITH entered AS (
                INSERT INTO gristmill.task (id, queue, priority, run_at, created_at, blocked,
                    delayed, slotted, unique_active, encoding, key, grp, source, headers, settings,
                    payload)
                SELECT g.id, v_queue.number, coalesce(g.priority, 0), w.run_at, v_now, w.blocked,
                       w.run_at > v_now AND NOT w.blocked, v_queue.grouped,
                       v_queue.unique_active, coalesce(g.encoding, 0), g.key, g.grp, g.source,
                       g.headers::jsonb, g.settings::jsonb, g.payload
                  FROM unnest(ids, p_payloads, p_encodings, p_keys, p_groups, p_sources,
                              p_priorities, p_run_ats, p_delays, p_headers, p_settings)
                    AS g (id, payload, encoding, key, grp, source, priority, at, delay, headers,
                          settings)
                 CROSS JOIN LATERAL (SELECT
                     coalesce(g.at, gristmill.later(v_now, gristmill.span(g.delay)), v_now)
                         AS run_at,
                     -- Asked by value: EXISTS may be answered by reading all keys
                     -- of the queue that are in flight.
                     (SELECT f.id FROM gristmill.flight f
                       WHERE f.queue = v_queue.number AND f.key = g.key) IS NOT NULL
                         AS blocked) w
                 WHERE g.key IS NOT NULL AND g.id IS NOT NULL
                 -- Two puts of the same keys wait for each other at the first
                 -- one, instead of crosswise.
                 ORDER BY g.key COLLATE "C"
                ON CONFLICT (queue, key) WHERE key IS NOT NULL AND NOT in_flight DO NOTHING
                RETURNING id, run_at, delayed, blocked
            ), waiting AS (
                INSERT INTO gristmill.delayed (run_at, id, queue)
                SELECT e.run_at, e.id, v_queue.number FROM entered e WHERE e.delayed
            )
            SELECT array_agg(e.id), v_entered + count(*),
                   v_delayed + count(*) FILTER (WHERE e.delayed),
                   count(*) FILTER (WHERE e.blocked)
              INTO v_inserted, v_entered, v_delayed, v_blocked
              FROM entered e;
        END IF;
        v_ready := v_entered - v_delayed - v_blocked;
        IF v_answers IS NOT NULL OR v_entered < v_count THEN
            -- Keys that somebody else put since the first look: one by one.
            SELECT array_agg(i) INTO v_late
              FROM generate_series(1, v_count) i
             WHERE v_answers[i] IS NULL AND p_keys[i] IS NOT NULL
               AND ids[i] <> ALL (coalesce(v_inserted, '{}'));
            v_answers := ARRAY(
                SELECT CASE WHEN v_answers[i] IS NULL
                            THEN ROW(0, ids[i], NULL, NULL, NULL)::gristmill.put_answer
                            ELSE v_answers[i] END
                  FROM generate_series(1, v_count) i);
            IF v_late IS NOT NULL THEN
                v_again := gristmill.put_each(v_queue, v_late, p_payloads, p_encodings, p_keys,
                    p_groups, p_sources, p_priorities, p_run_ats, p_delays, p_caller_ids,
                    p_headers, p_settings, NULL, false, v_inside, v_now);
                FOR i IN 1..cardinality(v_late) LOOP
                    v_answers[v_late[i]] := v_again[i];
                END LOOP;
            END IF;
            FOR i IN 1..v_count LOOP
                IF v_answers[i].id < 0 THEN
                    v_answers[i] := gristmill.duplicate_of(v_answers[-v_answers[i].id].id);
                END IF;
            END LOOP;
        END IF;
    END IF;

    IF v_answers IS NULL THEN
        INSERT INTO gristmill.delta (at, queue, ready, delayed, blocked, put, refused)
        VALUES (v_now, v_queue.number, v_ready, nullif(v_delayed, 0), nullif(v_blocked, 0),
                v_count, nullif(p_refused, 0));
    ELSE
        SELECT array_agg(a.outcome), array_agg(a.id), array_agg(a.run_at), array_agg(a.source),
               array_agg(a.detail)
          INTO outcomes, ids, run_ats, sources, details
          FROM unnest(v_answers) a;
        INSERT INTO gristmill.delta (at, queue, ready, delayed, blocked, put, duplicate, replaced,
            refused)
        SELECT v_now, v_queue.number, v_ready, v_delayed, v_blocked,
               nullif(count(*) FILTER (WHERE o = 0), 0), nullif(count(*) FILTER (WHERE o = 1), 0),
               nullif(count(*) FILTER (WHERE o = 2), 0),
               nullif(count(*) FILTER (WHERE o = 3) + p_refused, 0)
          FROM unnest(outcomes) o;
    END IF;
    IF p_settings IS NOT NULL THEN
        PERFORM gristmill.want(v_queue.number, ids, p_settings, outcomes, v_now);
    END IF;
END
$$;

-- The markers of these keys go: a run of the key begins after them, or, of those
-- beside a task in flight only, its settlement comes after them. What somebody
-- else is putting again at this moment is left to him.
CREATE FUNCTION gristmill.take_markers(p_queue integer, p_keys text[], p_in_flight boolean)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM gristmill.marker m
     WHERE m.ctid = ANY (ARRAY(
               SELECT x.ctid FROM gristmill.marker x
                WHERE x.key = ANY (p_keys) AND x.queue = p_queue
                  AND (x.in_flight OR NOT p_in_flight)
                  FOR UPDATE SKIP LOCKED));
END
$$;

-- Puts again what committed transactions left markers for and no claim took
-- along: mostly a task stands for it still, else it is enqueued now. Not refused
-- for want of room: it was answered long ago. What was promised a run and is in
-- flight (unique: active) waits for its end, for it may have begun before. Whoever holds an equal key in an
-- open transaction is waited for hardly at all; then these are tried one by one,
-- from some place among them, and what is held stays for another time.
CREATE FUNCTION gristmill.put_markers(
    p_limit integer, p_now timestamptz, OUT seen bigint, OUT enqueued bigint, OUT woken text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_marker bigint;
    v_some   record;
BEGIN
    BEGIN
        SELECT s.* INTO v_some FROM gristmill.put_marked(ARRAY(
            SELECT m.id FROM gristmill.marker m
             WHERE m.in_flight
                OR (SELECT f.id FROM gristmill.flight f
                     WHERE f.key = m.key AND f.queue = m.queue
                       AND (SELECT q.unique_active FROM gristmill.queue q
                             WHERE q.number = f.queue)) IS NULL
             ORDER BY m.id LIMIT p_limit FOR UPDATE SKIP LOCKED), 20, p_now) s;
        seen := v_some.seen;
        enqueued := v_some.enqueued;
        woken := v_some.woken;
    EXCEPTION WHEN lock_not_available THEN
        seen := 0;
        enqueued := 0;
        FOR v_marker IN
            SELECT m.id FROM gristmill.marker m
             WHERE m.id >= (SELECT min(x.id) + floor(random() * (max(x.id) - min(x.id) + 1))::bigint
                              FROM gristmill.marker x)
             ORDER BY m.id LIMIT 20 FOR UPDATE SKIP LOCKED
        LOOP
            BEGIN
                SELECT s.* INTO v_some FROM gristmill.put_marked(ARRAY[v_marker], 2, p_now) s;
                seen := seen + v_some.seen;
                enqueued := enqueued + v_some.enqueued;
                woken := woken || v_some.woken;
            EXCEPTION WHEN lock_not_available THEN
                NULL;
            END;
        END LOOP;
    END;
END
$$;

-- Puts what these markers stand for, and takes them away.
CREATE FUNCTION gristmill.put_marked(
    p_markers bigint[], p_patience integer, p_now timestamptz,
    OUT seen bigint, OUT enqueued bigint, OUT woken text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    v_some record;
    v_put  record;
    v_new  integer;
BEGIN
    seen := cardinality(p_markers);
    enqueued := 0;
    IF seen = 0 THEN
        RETURN;
    END IF;
    FOR v_some IN
        WITH taken AS (
            DELETE FROM gristmill.marker m WHERE m.id = ANY (p_markers) RETURNING m.*
        )
        SELECT q.number, q.name::text AS name, array_agg(t.payload ORDER BY t.id) AS payloads,
               array_agg(t.encoding ORDER BY t.id) AS encodings,
               array_agg(t.key::text ORDER BY t.id) AS keys,
               array_agg(t.grp::text ORDER BY t.id) AS groups,
               array_agg(t.source::text ORDER BY t.id) AS sources,
               array_agg(t.priority ORDER BY t.id) AS priorities,
               array_agg(t.run_at ORDER BY t.id) AS run_ats,
               array_agg(t.headers::text ORDER BY t.id) AS headers,
               array_agg(t.settings::text ORDER BY t.id) AS settings
          FROM taken t JOIN gristmill.queue q ON q.number = t.queue
         GROUP BY q.number, q.name ORDER BY q.name
    LOOP
        SELECT * INTO v_put FROM gristmill.put_many(v_some.name, v_some.payloads,
            v_some.encodings, v_some.keys, v_some.groups, v_some.sources, v_some.priorities,
            v_some.run_ats, NULL, NULL, v_some.headers, p_outside => false, p_inside => false,
            p_patience => p_patience, p_now => p_now, p_settings => v_some.settings);
        v_new := CASE WHEN v_put.outcomes IS NULL THEN cardinality(v_some.keys)
                      ELSE (SELECT count(*) FROM unnest(v_put.outcomes) o WHERE o = 0) END;
        -- Counted as duplicates when they were answered so.
        INSERT INTO gristmill.delta (at, queue, duplicate)
        SELECT p_now, v_some.number, -count(*) FROM unnest(v_put.outcomes) o WHERE o = 1
        HAVING count(*) > 0;
        IF v_new > 0 THEN
            enqueued := enqueued + v_new;
            woken := woken || v_some.name;
        END IF;
    END LOOP;
END
$$;
