-- Queues as SQL clients declare them: the settings by their names, read into the
-- form that every program reads, and put in force.

-- Puts a queue's settings in force: JSON with the settings' names, spans in
-- microseconds, null for none. What is not named gets its default.
CREATE FUNCTION gristmill.put_in_force(p_number integer, p_settings jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_backoff jsonb := coalesce(p_settings -> 'backoff', '{}');
    v_rate    jsonb := nullif(p_settings -> 'rate', 'null');
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
        keep_result = gristmill.span((p_settings ->> 'keep_result')::bigint),
        keep_failed = gristmill.span((p_settings ->> 'keep_failed')::bigint),
        relaxed = coalesce(p_settings ->> 'durability', 'full') = 'relaxed',
        durable_claims = coalesce(p_settings ->> 'claims', 'async') = 'durable',
        unique_active = coalesce(p_settings ->> 'unique', 'pending') = 'active',
        on_duplicate = coalesce(p_settings ->> 'on_duplicate', 'skip'),
        postpone_max = gristmill.span((p_settings ->> 'postpone_max')::bigint),
        unique_for = gristmill.span((p_settings ->> 'unique_for')::bigint),
        capacity = (p_settings ->> 'capacity')::bigint,
        count = coalesce((p_settings ->> 'count')::boolean, false),
        slots = (p_settings ->> 'slots')::integer,
        concurrency = (p_settings ->> 'concurrency')::integer,
        concurrency_per_group = coalesce(p_settings ->> 'concurrency_per', 'queue') = 'group',
        rate_tasks = (v_rate ->> 'tasks')::integer,
        rate_time = (v_rate ->> 'per')::bigint,
        -- Unless said, what the rate brings in a second.
        burst = CASE WHEN v_rate IS NOT NULL THEN coalesce((p_settings ->> 'burst')::bigint,
            div((v_rate ->> 'tasks')::numeric * 1000000 + (v_rate ->> 'per')::numeric - 1,
                (v_rate ->> 'per')::numeric)) END,
        rate_per_group = coalesce(p_settings ->> 'rate_per', 'queue') = 'group',
        fair = coalesce(p_settings ->> 'fair', 'none') = 'group',
        limited = v_rate IS NOT NULL OR p_settings ->> 'concurrency' IS NOT NULL
            OR coalesce(p_settings ->> 'fair', 'none') = 'group',
        grouped = p_settings ->> 'slots' IS NOT NULL
            OR coalesce(p_settings ->> 'fair', 'none') = 'group'
            OR v_rate IS NOT NULL AND coalesce(p_settings ->> 'rate_per', 'queue') = 'group'
            OR p_settings ->> 'concurrency' IS NOT NULL
               AND coalesce(p_settings ->> 'concurrency_per', 'queue') = 'group',
        frees = coalesce(p_settings ->> 'slots', p_settings ->> 'concurrency') IS NOT NULL,
        bind_table = p_settings -> 'bind' ->> 'table',
        bind_column = p_settings -> 'bind' ->> 'column'
     WHERE q.number = p_number;
    -- The group index holds the tasks of queues whose claims look at groups.
    UPDATE gristmill.task t SET slotted = true
      FROM gristmill.queue q
     WHERE q.number = p_number AND q.grouped AND t.queue = p_number AND NOT t.slotted;
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
        p_name, p_said USING ERRCODE = 'GM400', COLUMN = p_name;
END
$$;

-- A rate as it is stored: of a text such as 100/minute, or as an object of its parts.
CREATE FUNCTION gristmill.stored_rate(p_said jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_text  text := p_said #>> '{}';
    v_tasks numeric;
    v_time  text;
    v_per   bigint;
BEGIN
    IF jsonb_typeof(p_said) = 'object' THEN
        v_text := concat(p_said ->> 'tasks', '/', p_said ->> 'per');
    END IF;
    BEGIN
        v_tasks := split_part(v_text, '/', 1)::numeric;
        v_time := btrim(split_part(v_text, '/', 2));
        v_per := CASE
            WHEN v_time IN ('s', 'second') THEN 1000000
            WHEN v_time IN ('m', 'minute') THEN 60000000
            WHEN v_time IN ('h', 'hour') THEN 3600000000
            WHEN v_time IN ('d', 'day') THEN 86400000000
            WHEN v_time ~ '^[0-9.]+$' THEN
                (gristmill.stored_span('rate', to_jsonb(v_time::numeric)) #>> '{}')::bigint
            ELSE (gristmill.stored_span('rate', to_jsonb(v_time)) #>> '{}')::bigint END;
    EXCEPTION WHEN data_exception OR raise_exception OR sqlstate 'GM400' THEN
        v_tasks := NULL;
    END;
    IF v_tasks IS NULL OR v_per IS NULL OR v_tasks <> trunc(v_tasks)
       OR v_tasks NOT BETWEEN 1 AND 2147483647 OR v_tasks > v_per THEN
        RAISE EXCEPTION 'rate is %: it is a number of tasks and a time, such as 100/minute, at most a million a second',
            p_said USING ERRCODE = 'GM400', COLUMN = 'rate';
    END IF;
    RETURN jsonb_build_object('tasks', v_tasks::bigint, 'per', v_per);
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
    IF jsonb_typeof(p_said) IS DISTINCT FROM 'object' THEN
        PERFORM gristmill.refuse('settings', format('is %s: it is an object of settings',
            coalesce('JSON''s ' || jsonb_typeof(p_said), 'null')));
    END IF;
    FOR v_name, v_value IN SELECT s.key, s.value FROM jsonb_each(p_said) s LOOP
        v_kind := CASE
            WHEN v_name IN ('lease', 'timeout', 'id_window', 'keep_done', 'keep_result', 'keep_failed',
                            'postpone_max', 'unique_for', 'drain_within', 'max_wait') THEN 'span'
            WHEN v_name IN ('max_attempts', 'capacity', 'batch_size', 'slots', 'concurrency', 'burst',
                            'processors_min', 'processors_max', 'processors_weight') THEN 'number'
            WHEN v_name IN ('unique', 'on_duplicate', 'durability', 'claims',
                            'concurrency_per', 'rate_per', 'fair') THEN 'string'
            WHEN v_name = 'rate' THEN 'rate'
            WHEN v_name = 'count' THEN 'boolean'
            WHEN v_name IN ('backoff', 'bind') THEN 'object' END;
        IF v_kind IS NULL THEN
            RAISE EXCEPTION 'there is no setting ''%''', v_name
                USING ERRCODE = 'GM400', COLUMN = 'settings';
        END IF;
        IF jsonb_typeof(v_value) = 'null' AND v_name IN (
            'max_attempts', 'capacity', 'slots', 'concurrency', 'rate', 'burst',
            'processors_max', 'keep_done', 'keep_result', 'keep_failed', 'postpone_max', 'unique_for',
            'drain_within', 'max_wait', 'bind') THEN
            NULL; -- none, which these can be
        ELSIF v_kind = 'span' THEN
            v_value := gristmill.stored_span(v_name, v_value);
        ELSIF v_kind = 'rate' THEN
            v_value := gristmill.stored_rate(v_value);
        ELSIF jsonb_typeof(v_value) <> v_kind THEN
            v_fault := format('%s is %s: it is %s %s', v_name, v_value,
                              CASE v_kind WHEN 'object' THEN 'an' ELSE 'a' END, v_kind);
        ELSIF v_kind = 'number' AND (v_value::numeric <> trunc(v_value::numeric)
            OR v_value::numeric NOT BETWEEN CASE v_name WHEN 'processors_min' THEN 0 ELSE 1 END
               AND CASE v_name WHEN 'batch_size' THEN 1000 WHEN 'slots' THEN 10000
                               WHEN 'concurrency' THEN 100000 WHEN 'burst' THEN 1000000
                               WHEN 'capacity' THEN 9007199254740992 ELSE 2147483647 END) THEN
            v_fault := format('%s cannot be %s', v_name, v_value);
        ELSIF (v_name = 'unique' AND v_value #>> '{}' NOT IN ('pending', 'active'))
           OR (v_name = 'durability' AND v_value #>> '{}' NOT IN ('full', 'relaxed'))
           OR (v_name = 'fair' AND v_value #>> '{}' NOT IN ('none', 'group'))
           OR (v_name = 'rate_per' AND v_value #>> '{}' NOT IN ('queue', 'group'))
           OR (v_name = 'concurrency_per' AND v_value #>> '{}' NOT IN ('queue', 'group'))
           OR (v_name = 'claims' AND v_value #>> '{}' NOT IN ('async', 'durable'))
           OR (v_name = 'on_duplicate'
               AND v_value #>> '{}' NOT IN ('skip', 'replace', 'postpone')) THEN
            v_fault := format('%s cannot be %s', v_name, v_value);
        ELSIF v_kind = 'object' AND EXISTS (
            SELECT 1 FROM jsonb_object_keys(v_value) k
             WHERE k <> ALL (CASE v_name WHEN 'bind' THEN ARRAY['table', 'column']
                                         ELSE ARRAY['base', 'cap', 'jitter'] END)) THEN
            v_fault := format('%s has something that is not part of it: %s', v_name, v_value);
        ELSIF v_name = 'backoff'
          AND jsonb_typeof(coalesce(v_value -> 'jitter', 'true')) <> 'boolean' THEN
            v_fault := format('backoff.jitter is %s: it is true or false', v_value -> 'jitter');
        ELSIF v_name = 'backoff' THEN
            -- Stored whole; what is not said has its default.
            v_value := jsonb_build_object(
                'base', gristmill.stored_span('backoff.base', coalesce(v_value -> 'base', '2')),
                'cap', gristmill.stored_span('backoff.cap', coalesce(v_value -> 'cap', '3600')),
                'jitter', coalesce((v_value ->> 'jitter')::boolean, true));
        ELSIF v_name = 'bind' AND (jsonb_typeof(v_value -> 'table') IS DISTINCT FROM 'string'
                OR jsonb_typeof(v_value -> 'column') IS DISTINCT FROM 'string') THEN
            v_fault := 'bind names a table and a column';
        END IF;
        v_stored := v_stored || jsonb_build_object(v_name, v_value);
    END LOOP;
    v_fault := coalesce(v_fault, CASE
        WHEN (v_stored ->> 'lease')::bigint < 100000 THEN 'lease is at least 0.1 seconds'
        WHEN (v_stored ->> 'timeout')::bigint = 0 THEN 'timeout is more than nothing'
        WHEN (v_stored ->> 'processors_max')::bigint < (v_stored ->> 'processors_min')::bigint
            THEN 'processors_max is below processors_min'
        WHEN v_stored ->> 'concurrency' IS NOT NULL AND v_stored ->> 'slots' IS NOT NULL
            THEN 'concurrency and slots both limit what runs at once: say one of them'
        WHEN v_stored ->> 'fair' = 'group' AND v_stored ->> 'slots' IS NOT NULL
            THEN 'a queue with slots cannot be fair: say concurrency instead'
        WHEN v_stored ->> 'rate' IS NOT NULL AND v_stored ->> 'slots' IS NOT NULL
            THEN 'a queue with slots cannot have a rate: say concurrency instead'
        WHEN (v_stored ->> 'burst')::numeric * (v_stored -> 'rate' ->> 'per')::numeric
            > 31622400000000 * (v_stored -> 'rate' ->> 'tasks')::numeric
            THEN 'burst is more than the rate brings in a year'
        WHEN v_stored ->> 'burst' IS NOT NULL AND v_stored ->> 'rate' IS NULL
            THEN 'burst is said of a rate, and there is none: say both or neither'
        WHEN (v_stored ->> 'unique_for')::bigint = 0
            THEN 'unique_for is more than nothing, or null'
        WHEN v_stored ->> 'unique_for' IS NOT NULL AND v_stored ->> 'on_duplicate' <> 'skip'
            THEN 'unique_for needs on_duplicate skip: it keeps puts out and changes no task'
        WHEN v_stored ->> 'unique' = 'active' AND v_stored ->> 'on_duplicate' <> 'skip'
            THEN 'on_duplicate needs unique pending: a running task cannot be changed' END);
    IF v_fault IS NOT NULL THEN
        RAISE EXCEPTION '%', v_fault USING ERRCODE = 'GM400', COLUMN = 'settings';
    END IF;
    RETURN v_stored;
END
$$;

-- Declares a queue, if there is none of the name; returns its number. Settings
-- that are arguments of their own go before those in the JSON. This part runs with
-- the caller's rights and search_path, because a table that the queue is bound to
-- is the one that the caller means by its name.
CREATE FUNCTION gristmill.add_queue(
    name text, settings jsonb DEFAULT '{}', lease interval DEFAULT NULL,
    max_attempts integer DEFAULT NULL, capacity bigint DEFAULT NULL,
    keep_done interval DEFAULT NULL, keep_failed interval DEFAULT NULL
) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_place oid;
BEGIN
    BEGIN
        v_place := to_regclass($2 #>> '{bind,table}');
    EXCEPTION WHEN syntax_error OR invalid_name THEN
        NULL; -- no name at all, which is said below
    END;
    RETURN gristmill.declare_queue($1, $2, jsonb_strip_nulls(jsonb_build_object('lease', $3,
        'max_attempts', $4, 'capacity', $5, 'keep_done', $6, 'keep_failed', $7)), v_place);
END
$$;

-- The rest of it. p_place: the table that it is bound to.
CREATE FUNCTION gristmill.declare_queue(
    p_name text, p_settings jsonb, p_said jsonb, p_place oid
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_number   integer;
    v_settings jsonb;
BEGIN
    PERFORM gristmill.must_be('name', p_name IS NULL, 'a queue''s name');
    PERFORM gristmill.check_name('name', p_name);
    v_settings := gristmill.stored_settings(
        CASE WHEN jsonb_typeof(p_settings) = 'object' THEN p_settings || p_said
             ELSE p_settings END);
    -- One declaration at a time: numbers are given without gaps or clashes.
    PERFORM 1 FROM gristmill.meta m FOR UPDATE;
    SELECT q.number INTO v_number FROM gristmill.queue q WHERE q.name = p_name;
    IF NOT FOUND THEN
        SELECT greatest(coalesce(max(q.number), 0) + 1, 10000) INTO v_number
          FROM gristmill.queue q;
        INSERT INTO gristmill.queue (number, name, declared, created_at)
        VALUES (v_number, p_name, jsonb_build_array(jsonb_build_object(
            'origin', 'code', 'settings', v_settings))::text, clock_timestamp());
        INSERT INTO gristmill.total (queue) VALUES (v_number);
        PERFORM gristmill.put_in_force(v_number, v_settings);
        IF jsonb_typeof(v_settings -> 'bind') = 'object' THEN
            PERFORM gristmill.bind_subject(v_number, v_settings -> 'bind' ->> 'table',
                                           v_settings -> 'bind' ->> 'column', false, p_place);
        END IF;
    END IF;
    RETURN v_number;
END
$$;
