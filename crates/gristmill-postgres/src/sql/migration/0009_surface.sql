-- The surface for any client of the database: producers, workers and operators
-- that speak nothing but SQL. Thin wrappers of the functions the Rust store
-- uses; each call is atomic and joins the caller's transaction.

-- Puts a queue's settings in force: JSON with the settings' names, spans in
-- microseconds, null for none. What is not named gets its default.
CREATE FUNCTION gristmill.put_in_force(p_number integer, p_settings jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_backoff jsonb := coalesce(p_settings -> 'backoff', '{}');
BEGIN
    UPDATE gristmill.queue q SET
        lease = gristmill.span(coalesce((p_settings ->> 'lease')::bigint, 60000000)),
        max_attempts = CASE WHEN p_settings ? 'max_attempts'
                            THEN (p_settings ->> 'max_attempts')::integer ELSE 5 END,
        backoff_base = coalesce((v_backoff ->> 'base')::bigint, 2000000),
        backoff_cap = coalesce((v_backoff ->> 'cap')::bigint, 3600000000),
        backoff_jitter = coalesce((v_backoff ->> 'jitter')::boolean, true),
        id_window = gristmill.span(coalesce((p_settings ->> 'id_window')::bigint, 86400000000)),
        keep_done = gristmill.span((p_settings ->> 'keep_done')::bigint),
        keep_failed = gristmill.span((p_settings ->> 'keep_failed')::bigint),
        relaxed = coalesce(p_settings ->> 'durability', 'full') = 'relaxed',
        durable_claims = coalesce(p_settings ->> 'claims', 'async') = 'durable',
        unique_active = coalesce(p_settings ->> 'unique', 'pending') = 'active',
        on_duplicate = coalesce(p_settings ->> 'on_duplicate', 'skip'),
        postpone_max = gristmill.span((p_settings ->> 'postpone_max')::bigint),
        capacity = (p_settings ->> 'capacity')::bigint,
        count = coalesce((p_settings ->> 'count')::boolean, false),
        slots = (p_settings ->> 'slots')::integer,
        bind_table = p_settings -> 'bind' ->> 'table',
        bind_column = p_settings -> 'bind' ->> 'column'
     WHERE q.number = p_number;
    -- The group index holds the tasks of queues with slots.
    UPDATE gristmill.task t SET slotted = true
      FROM gristmill.queue q
     WHERE q.number = p_number AND q.slots IS NOT NULL AND t.queue = p_number AND NOT t.slotted;
END
$$;

-- A span as it is stored, in microseconds: an interval ('3 minutes') or a number
-- of seconds.
CREATE FUNCTION gristmill.stored_span(p_name text, p_said jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_seconds numeric;
BEGIN
    v_seconds := CASE jsonb_typeof(p_said)
        WHEN 'number' THEN p_said::numeric
        WHEN 'string' THEN extract(epoch FROM (p_said #>> '{}')::interval) END;
    IF v_seconds IS NULL OR v_seconds NOT BETWEEN 0 AND 366 * 86400 THEN
        RAISE invalid_text_representation;
    END IF;
    RETURN to_jsonb(trunc(v_seconds * 1000000)::bigint);
EXCEPTION WHEN data_exception THEN
    RAISE EXCEPTION '% is %: it is an interval such as "3 minutes" or a number of seconds, at most a year',
        p_name, p_said USING ERRCODE = 'GM400';
END
$$;

-- Settings as SQL says them, in the form that every program reads. What could
-- not be read back, or could never work, is refused here: nothing else would
-- before a worker stumbles over it.
CREATE FUNCTION gristmill.stored_settings(p_said jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_stored jsonb := '{}';
    v_name   text;
    v_value  jsonb;
    v_kind   text;
    v_fault  text;
BEGIN
    FOR v_name, v_value IN SELECT s.key, s.value FROM jsonb_each(p_said) s LOOP
        v_kind := CASE
            WHEN v_name IN ('lease', 'timeout', 'id_window', 'keep_done', 'keep_failed',
                            'postpone_max', 'drain_within', 'max_wait') THEN 'span'
            WHEN v_name IN ('max_attempts', 'capacity', 'batch_size', 'slots', 'processors_min',
                            'processors_max', 'processors_weight') THEN 'number'
            WHEN v_name IN ('unique', 'on_duplicate', 'durability', 'claims') THEN 'string'
            WHEN v_name = 'count' THEN 'boolean'
            WHEN v_name IN ('backoff', 'bind') THEN 'object' END;
        IF v_kind IS NULL THEN
            RAISE EXCEPTION 'there is no setting ''%''', v_name USING ERRCODE = 'GM400';
        END IF;
        IF jsonb_typeof(v_value) = 'null' AND v_name IN (
            'max_attempts', 'capacity', 'slots', 'processors_max', 'keep_done', 'keep_failed',
            'postpone_max', 'drain_within', 'max_wait', 'bind') THEN
            NULL; -- none, which these can be
        ELSIF v_kind = 'span' THEN
            v_value := gristmill.stored_span(v_name, v_value);
        ELSIF jsonb_typeof(v_value) <> v_kind THEN
            v_fault := format('%s is %s: it is %s %s', v_name, v_value,
                              CASE v_kind WHEN 'object' THEN 'an' ELSE 'a' END, v_kind);
        ELSIF v_kind = 'number' AND (v_value::numeric <> trunc(v_value::numeric)
            OR v_value::numeric NOT BETWEEN CASE v_name WHEN 'processors_min' THEN 0 ELSE 1 END
               AND CASE v_name WHEN 'batch_size' THEN 1000 WHEN 'slots' THEN 10000
                               WHEN 'capacity' THEN 9007199254740992 ELSE 2147483647 END) THEN
            v_fault := format('%s cannot be %s', v_name, v_value);
        ELSIF (v_name = 'unique' AND v_value #>> '{}' NOT IN ('pending', 'active'))
           OR (v_name = 'durability' AND v_value #>> '{}' NOT IN ('full', 'relaxed'))
           OR (v_name = 'claims' AND v_value #>> '{}' NOT IN ('async', 'durable'))
           OR (v_name = 'on_duplicate'
               AND v_value #>> '{}' NOT IN ('skip', 'replace', 'postpone')) THEN
            v_fault := format('%s cannot be %s', v_name, v_value);
        ELSIF v_name = 'backoff' THEN
            -- Stored whole; what is not said has its default.
            v_value := jsonb_build_object(
                'base', gristmill.stored_span('backoff.base', coalesce(v_value -> 'base', '2')),
                'cap', gristmill.stored_span('backoff.cap', coalesce(v_value -> 'cap', '3600')),
                'jitter', coalesce((v_value ->> 'jitter')::boolean, true));
        ELSIF v_name = 'bind' AND (v_value ->> 'table' IS NULL OR v_value ->> 'column' IS NULL) THEN
            v_fault := 'bind names a table and a column';
        END IF;
        v_stored := v_stored || jsonb_build_object(v_name, v_value);
    END LOOP;
    v_fault := coalesce(v_fault, CASE
        WHEN (v_stored ->> 'lease')::bigint < 100000 THEN 'lease is at least 0.1 seconds'
        WHEN (v_stored ->> 'timeout')::bigint = 0 THEN 'timeout is more than nothing'
        WHEN (v_stored ->> 'processors_max')::bigint < (v_stored ->> 'processors_min')::bigint
            THEN 'processors_max is below processors_min'
        WHEN v_stored ->> 'unique' = 'active' AND v_stored ->> 'on_duplicate' <> 'skip'
            THEN 'on_duplicate needs unique pending: a running task cannot be changed' END);
    IF v_fault IS NOT NULL THEN
        RAISE EXCEPTION '%', v_fault USING ERRCODE = 'GM400';
    END IF;
    RETURN v_stored;
END
$$;

-- Declares a queue, if there is none of the name; returns its number. Settings
-- that are arguments of their own go before those in the JSON.
CREATE FUNCTION gristmill.add_queue(
    name text, settings jsonb DEFAULT '{}', lease interval DEFAULT NULL,
    max_attempts integer DEFAULT NULL, capacity bigint DEFAULT NULL,
    keep_done interval DEFAULT NULL, keep_failed interval DEFAULT NULL
) RETURNS integer
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_number   integer;
    v_settings jsonb;
BEGIN
    IF $1 !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' THEN
        RAISE EXCEPTION '''%'' is not a queue name: letters, digits, ''_'', ''.'' and ''-''', $1
            USING ERRCODE = 'GM400';
    END IF;
    v_settings := gristmill.stored_settings($2 || jsonb_strip_nulls(jsonb_build_object(
        'lease', $3, 'max_attempts', $4, 'capacity', $5, 'keep_done', $6, 'keep_failed', $7)));
    -- One declaration at a time: numbers are given without gaps or clashes.
    PERFORM 1 FROM gristmill.meta m FOR UPDATE;
    SELECT q.number INTO v_number FROM gristmill.queue q WHERE q.name = $1;
    IF NOT FOUND THEN
        SELECT greatest(coalesce(max(q.number), 0) + 1, 10000) INTO v_number
          FROM gristmill.queue q;
        INSERT INTO gristmill.queue (number, name, declared, created_at)
        VALUES (v_number, $1, jsonb_build_array(jsonb_build_object(
            'origin', 'code', 'settings', v_settings))::text, clock_timestamp());
        INSERT INTO gristmill.total (queue) VALUES (v_number);
        PERFORM gristmill.put_in_force(v_number, v_settings);
        IF jsonb_typeof(v_settings -> 'bind') = 'object' THEN
            PERFORM gristmill.bind_subject(v_number, v_settings -> 'bind' ->> 'table',
                                           v_settings -> 'bind' ->> 'column');
        END IF;
    END IF;
    RETURN v_number;
END
$$;

-- Says that the caller may go on with nothing else: an unknown queue.
CREATE FUNCTION gristmill.no_queue(p_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'there is no queue ''%''', p_name
        USING ERRCODE = 'GM404', HINT = 'declare it: SELECT gristmill.add_queue(''name'')';
END
$$;

-- Puts one task with a JSON payload. outcome: enqueued, duplicate, replaced or
-- refused (reason: queue_full, no_such_subject, subject_table_gone, id_reused,
-- or a sentence).
CREATE FUNCTION gristmill.enqueue(
    queue text, payload jsonb, key text DEFAULT NULL, delay interval DEFAULT NULL,
    run_at timestamptz DEFAULT NULL, priority integer DEFAULT 0, "group" text DEFAULT NULL,
    source text DEFAULT NULL, caller_id text DEFAULT NULL, headers jsonb DEFAULT NULL,
    now timestamptz DEFAULT NULL
) RETURNS TABLE (outcome text, id bigint, reason text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF $4 IS NOT NULL AND $5 IS NOT NULL THEN
        RAISE EXCEPTION 'say delay or run_at, not both' USING ERRCODE = 'GM400';
    END IF;
    RETURN QUERY SELECT e.outcome, e.id, e.reason FROM gristmill.enqueue_many(
        $1, ARRAY[$2], ARRAY[$3], coalesce($5, coalesce($11, clock_timestamp()) + $4), $6, $7, $8,
        ARRAY[$9], $10, $11) e;
END
$$;

-- Puts many tasks with JSON payloads in one step; keys and caller_ids, when
-- given, have one entry a task. One row a task, in order.
CREATE FUNCTION gristmill.enqueue_many(
    queue text, payloads jsonb[], keys text[] DEFAULT NULL, run_at timestamptz DEFAULT NULL,
    priority integer DEFAULT 0, "group" text DEFAULT NULL, source text DEFAULT NULL,
    caller_ids text[] DEFAULT NULL, headers jsonb DEFAULT NULL, now timestamptz DEFAULT NULL
) RETURNS TABLE (nth integer, outcome text, id bigint, reason text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_bytes bytea[];
    v_put   record;
    v_count integer := cardinality($2);
    v_fault text;
BEGIN
    v_bytes := ARRAY(SELECT convert_to(p.payload::text, 'UTF8')
                       FROM unnest($2) WITH ORDINALITY AS p (payload, nth) ORDER BY p.nth);
    IF v_count > 10000 THEN
        v_fault := 'more than 10000 tasks in one call';
    ELSIF EXISTS (SELECT 1 FROM unnest(v_bytes) b WHERE octet_length(b) > 1048576) THEN
        v_fault := 'a payload is over 1 MiB';
    ELSIF EXISTS (SELECT 1 FROM unnest($3 || $8 || ARRAY[$6, $7]) t
                   WHERE t = '' OR octet_length(t) > 512) THEN
        v_fault := 'a key, group, source or id is empty or over 512 bytes';
    ELSIF octet_length($9::text) > 8192 THEN
        v_fault := 'the headers are over 8 KiB';
    END IF;
    IF v_fault IS NOT NULL THEN
        RAISE EXCEPTION '%', v_fault USING ERRCODE = 'GM400';
    END IF;
    SELECT * INTO v_put FROM gristmill.put_many($1, v_bytes,
        p_keys => CASE WHEN EXISTS (SELECT 1 FROM unnest($3) k WHERE k IS NOT NULL) THEN $3 END,
        p_groups => CASE WHEN $6 IS NOT NULL THEN array_fill($6, ARRAY[v_count]) END,
        p_sources => CASE WHEN $7 IS NOT NULL THEN array_fill($7, ARRAY[v_count]) END,
        p_priorities => array_fill($5::smallint, ARRAY[v_count]),
        p_run_ats => CASE WHEN $4 IS NOT NULL THEN array_fill($4, ARRAY[v_count]) END,
        p_caller_ids => CASE WHEN EXISTS (SELECT 1 FROM unnest($8) i WHERE i IS NOT NULL)
                             THEN $8 END,
        p_headers => CASE WHEN $9 IS NOT NULL THEN array_fill($9::text, ARRAY[v_count]) END,
        p_now => $10);
    IF NOT v_put.is_known THEN
        PERFORM gristmill.no_queue($1);
    END IF;
    RETURN QUERY
    SELECT i, (ARRAY['enqueued', 'duplicate', 'replaced', 'refused'])
                  [coalesce(v_put.outcomes[i], 0) + 1], v_put.ids[i], v_put.details[i]
      FROM generate_series(1, v_count) i;
END
$$;

-- JSON where the payload is, else null: a claim must not fail for one task.
CREATE FUNCTION gristmill.as_json(p_payload bytea, p_encoding smallint) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF p_encoding <> 0 THEN
        RETURN NULL;
    END IF;
    RETURN convert_from(p_payload, 'UTF8')::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;

-- 128 random bits: never a counter, which a power cut can hand out twice.
CREATE FUNCTION gristmill.new_token() RETURNS uuid
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN encode(substring(sha256(
        uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) FOR 16), 'hex')::uuid;
END
$$;

-- Takes due tasks under a new lease. Every row has the same token: it settles
-- and extends. payload is null where it is not JSON; raw always has the bytes.
CREATE FUNCTION gristmill.claim(
    queue text, "limit" integer DEFAULT 1, lease_seconds double precision DEFAULT 180,
    source text DEFAULT NULL, worker text DEFAULT NULL, now timestamptz DEFAULT NULL
) RETURNS TABLE (
    id bigint, token uuid, payload jsonb, raw bytea, key text, "group" text, source_of text,
    priority smallint, attempt integer, claims integer, created_at timestamptz,
    run_at timestamptz, lease_until timestamptz, concurrent integer, slot integer
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_token uuid := gristmill.new_token();
BEGIN
    IF $2 < 1 OR $3 < 0.1 OR $3 > 366 * 86400 THEN
        RAISE EXCEPTION 'a claim takes 1 task or more, for 0.1 seconds to a year'
            USING ERRCODE = 'GM400';
    END IF;
    RETURN QUERY
    SELECT c.id, v_token, gristmill.as_json(c.payload, c.encoding), c.payload, c.key, c.grp,
           c.source, c.priority, c.attempt, c.claims, c.created_at, c.run_at,
           c.now + gristmill.span(c.lease), c.concurrent, c.slot
      FROM gristmill.claim_tasks($1, least($2, 1000), ($3 * 1000000)::bigint,
               coalesce($5, 'sql-' || pg_backend_pid()), $4, v_token, p_now => $6) c
     WHERE c.id IS NOT NULL
     ORDER BY c.priority, c.run_at, c.id;
END
$$;

-- How a settlement was answered, in a word.
CREATE FUNCTION gristmill.settle(
    p_id bigint, p_token uuid, p_outcome text, p_error text, p_at timestamptz, p_started boolean,
    p_now timestamptz
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_set record;
BEGIN
    SELECT * INTO v_set FROM gristmill.settle_many(ARRAY[p_token], ARRAY[p_id],
        ARRAY[p_outcome], ARRAY[gristmill.cut(p_error)], ARRAY[p_at],
        p_started => ARRAY[p_started], p_now => p_now);
    RETURN (ARRAY['recorded', 'already_recorded', 'gone', 'lease_lost'])
               [coalesce(v_set.answers[1], 0) + 1];
END
$$;

-- Settlements. All answer recorded, already_recorded, gone or lease_lost; none
-- of these is an error, and all but the first changed nothing. They are carried
-- out as the transaction commits: a lease that is lost before that makes the
-- commit fail.
CREATE FUNCTION gristmill.complete(id bigint, token uuid, now timestamptz DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN gristmill.settle($1, $2, 'done', NULL, NULL, true, $3);
END
$$;

-- Completes many tasks of one claim; returns how many were recorded.
CREATE FUNCTION gristmill.complete(ids bigint[], token uuid, now timestamptz DEFAULT NULL)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_set record;
BEGIN
    SELECT * INTO v_set FROM gristmill.settle_many(
        array_fill($2, ARRAY[cardinality($1)]), $1, p_now => $3);
    RETURN cardinality($1) - coalesce((SELECT count(*) FROM unnest(v_set.answers) a WHERE a > 0), 0);
END
$$;

-- It went wrong: retried with the queue's backoff, or failed when its attempts
-- are used up.
CREATE FUNCTION gristmill.error(
    id bigint, token uuid, error text, now timestamptz DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN gristmill.settle($1, $2, 'error', coalesce($3, ''), NULL, true, $4);
END
$$;

-- Again after a time the worker names; counts as an attempt.
CREATE FUNCTION gristmill.retry(
    id bigint, token uuid, after interval, reason text DEFAULT NULL,
    now timestamptz DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN gristmill.settle($1, $2, 'retry', $4,
        gristmill.later(coalesce($5, clock_timestamp()), $3), true, $5);
END
$$;

-- It can never succeed: failed now.
CREATE FUNCTION gristmill.fail(
    id bigint, token uuid, error text, now timestamptz DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN gristmill.settle($1, $2, 'fail', coalesce($3, ''), NULL, true, $4);
END
$$;

-- Gives it back; the attempt does not count (after a start, twenty times).
CREATE FUNCTION gristmill.release(
    id bigint, token uuid, after interval DEFAULT NULL, started boolean DEFAULT true,
    now timestamptz DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN gristmill.settle($1, $2, 'release', NULL,
        gristmill.later(coalesce($5, clock_timestamp()), $3), $4, $5);
END
$$;

-- Prolongs a lease. extended is false when it is lost: stop working.
-- cancelled: stop these and settle nothing but cancel; lost: their subject is
-- gone, there is nothing to settle.
CREATE FUNCTION gristmill.extend(
    token uuid, lease_seconds double precision DEFAULT 180, now timestamptz DEFAULT NULL
) RETURNS TABLE (extended boolean, cancelled bigint[], lost bigint[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF $2 < 0.1 OR $2 > 366 * 86400 THEN
        RAISE EXCEPTION 'a lease is from 0.1 seconds to a year' USING ERRCODE = 'GM400';
    END IF;
    RETURN QUERY SELECT * FROM gristmill.extend_many(ARRAY[$1], ARRAY[($2 * 1000000)::bigint], $3);
END
$$;

-- Takes back what crashed workers held; returns how many tasks.
CREATE FUNCTION gristmill.requeue_expired(
    queue text DEFAULT NULL, now timestamptz DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_number integer;
BEGIN
    IF $1 IS NOT NULL THEN
        SELECT q.number INTO v_number FROM gristmill.queue q WHERE q.name = $1;
        IF NOT FOUND THEN
            PERFORM gristmill.no_queue($1);
        END IF;
    END IF;
    RETURN (SELECT e.taken FROM gristmill.expire(v_number, 10000, NULL, 10,
        coalesce($2, clock_timestamp())) e);
END
$$;

-- What operators do to one task: moved, cancel_requested, duplicate,
-- wrong_state or gone.
CREATE FUNCTION gristmill.cancel(
    id bigint, note text DEFAULT NULL, by text DEFAULT NULL, now timestamptz DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT o.answer FROM gristmill.operate_one('cancel', $1,
        coalesce($3, session_user::text), gristmill.cut($2), coalesce($4, clock_timestamp())) o);
END
$$;

CREATE FUNCTION gristmill.resolve(
    id bigint, note text DEFAULT NULL, by text DEFAULT NULL, now timestamptz DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT o.answer FROM gristmill.operate_one('resolve', $1,
        coalesce($3, session_user::text), gristmill.cut($2), coalesce($4, clock_timestamp())) o);
END
$$;

CREATE FUNCTION gristmill.discard(
    id bigint, note text DEFAULT NULL, by text DEFAULT NULL, now timestamptz DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT o.answer FROM gristmill.operate_one('discard', $1,
        coalesce($3, session_user::text), gristmill.cut($2), coalesce($4, clock_timestamp())) o);
END
$$;

CREATE FUNCTION gristmill.retry_failed(
    id bigint, note text DEFAULT NULL, by text DEFAULT NULL, now timestamptz DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT o.answer FROM gristmill.operate_one('retry', $1,
        coalesce($3, session_user::text), gristmill.cut($2), coalesce($4, clock_timestamp())) o);
END
$$;

-- Sends every failed task of a queue back, with the note; its resolver is
-- cleared. Returns how many; those whose key waits again stay failed.
CREATE FUNCTION gristmill.retry_failed(
    queue text, note text DEFAULT NULL, by text DEFAULT NULL, now timestamptz DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_id    bigint;
    v_moved bigint := 0;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM gristmill.queue q WHERE q.name = $1) THEN
        PERFORM gristmill.no_queue($1);
    END IF;
    FOR v_id IN
        SELECT f.id FROM gristmill.failed f JOIN gristmill.queue q ON q.number = f.queue
         WHERE q.name = $1 ORDER BY f.id
    LOOP
        IF gristmill.retry_failed(v_id, $2, $3, $4) = 'moved' THEN
            v_moved := v_moved + 1;
        END IF;
    END LOOP;
    RETURN v_moved;
END
$$;

-- Stops claims of a queue, or lets them go on; puts always do. by is the
-- session's user unless said. True when it was not so before.
CREATE FUNCTION gristmill.set_paused(p_queue text, p_paused boolean, p_by text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_was boolean;
BEGIN
    -- As every change of a queue: one at a time.
    PERFORM 1 FROM gristmill.meta m FOR UPDATE;
    SELECT q.paused INTO v_was FROM gristmill.queue q WHERE q.name = p_queue;
    IF NOT FOUND THEN
        PERFORM gristmill.no_queue(p_queue);
    END IF;
    UPDATE gristmill.queue q
       SET paused = p_paused,
           paused_by = CASE WHEN p_paused THEN coalesce(p_by, session_user::text) END
     WHERE q.name = p_queue;
    RETURN v_was <> p_paused;
END
$$;

CREATE FUNCTION gristmill.pause(queue text, by text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN gristmill.set_paused($1, true, $2);
END
$$;

-- Workers hear of it with the commit.
CREATE FUNCTION gristmill.resume(queue text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM gristmill.wake($1);
    RETURN gristmill.set_paused($1, false, NULL);
END
$$;

-- A queue at a glance.
CREATE FUNCTION gristmill.stats(now timestamptz DEFAULT NULL)
RETURNS TABLE (
    queue text, ready bigint, delayed bigint, blocked bigint, processing bigint, failed bigint,
    total bigint, "wait" interval, paused boolean
)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.queue, s.ready, s.delayed, s.blocked, s.processing, s.failed_now,
           s.ready + s.delayed + s.blocked + s.processing + s.failed_now,
           s.now - s.oldest_ready, s.paused
      FROM gristmill.queue_stats($1) s;
END
$$;

-- Tells workers elsewhere that a queue has work. A hint: they also look by
-- themselves. Call it after the commit of the put, not in its transaction:
-- a NOTIFY makes commits wait for each other.
CREATE FUNCTION gristmill.wake(queue text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('gristmill.wake', $1);
END
$$;
