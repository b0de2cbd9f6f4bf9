-- Schedules as SQL clients declare them. They fire while a Gristmill process with
-- a scheduler runs (`gristmill up`); what is declared here is what it reads, so a
-- rule that it could not read is refused here.

-- One field of a cron expression as the numbers it means, null when it is none.
-- Lists, ranges, steps, and names where the field has some.
CREATE FUNCTION gristmill.cron_field(
    p_field text, p_from integer, p_to integer, p_names text[] DEFAULT '{}'
) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_item  text;
    v_parts text[];
    v_name  text;
    v_all   integer[];
BEGIN
    FOREACH v_item IN ARRAY string_to_array(upper(p_field), ',') LOOP
        FOREACH v_name IN ARRAY p_names LOOP
            -- The first name is that of the field's first number.
            v_item := regexp_replace(v_item, '\m' || v_name || '\M',
                (p_from + array_position(p_names, v_name) - 1)::text, 'g');
        END LOOP;
        v_parts := regexp_match(v_item, '^(?:(\*)|([0-9]{1,4})(?:-([0-9]{1,4}))?)(?:/([0-9]{1,4}))?$');
        IF v_parts IS NULL OR v_parts[4]::integer = 0
           OR (v_parts[4] IS NOT NULL AND v_parts[1] IS NULL AND v_parts[3] IS NULL)
           OR v_parts[2]::integer NOT BETWEEN p_from AND p_to
           OR v_parts[3]::integer NOT BETWEEN v_parts[2]::integer AND p_to THEN
            RETURN NULL;
        END IF;
        v_all := v_all || ARRAY(SELECT generate_series(
            coalesce(v_parts[2]::integer, p_from),
            coalesce(v_parts[3]::integer, v_parts[2]::integer, p_to),
            coalesce(v_parts[4]::integer, 1)));
    END LOOP;
    RETURN v_all;
END
$$;

-- Five fields, six with seconds in front, seven with a year behind, or a nickname.
CREATE FUNCTION gristmill.check_cron(p_cron text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    c_months constant text[] := '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}';
    c_days   constant text[] := '{SUN,MON,TUE,WED,THU,FRI,SAT}';
    v_fields text[] := regexp_split_to_array(trim(p_cron), '\s+');
    v_days   integer[];
    v_months integer[];
BEGIN
    IF lower(p_cron) IN ('@yearly', '@annually', '@monthly', '@weekly', '@daily', '@hourly') THEN
        RETURN;
    END IF;
    IF cardinality(v_fields) = 5 THEN
        v_fields := '0'::text || v_fields;
    END IF;
    IF cardinality(v_fields) = 6 THEN
        v_fields := v_fields || '*'::text;
    END IF;
    IF cardinality(v_fields) = 7 THEN
        v_days := gristmill.cron_field(v_fields[4], 1, 31);
        v_months := gristmill.cron_field(v_fields[5], 1, 12, c_months);
    END IF;
    IF v_days IS NULL OR v_months IS NULL
       OR gristmill.cron_field(v_fields[1], 0, 59) IS NULL
       OR gristmill.cron_field(v_fields[2], 0, 59) IS NULL
       OR gristmill.cron_field(v_fields[3], 0, 23) IS NULL
       OR gristmill.cron_field(v_fields[6], 0, 7, c_days) IS NULL
       OR (v_fields[7] <> '*' AND gristmill.cron_field(v_fields[7], 2026, 5000) IS NULL) THEN
        PERFORM gristmill.refuse('cron', format('is ''%s'': it is five fields, such as '
            '''30 6 * * MON-FRI'', of numbers, names, lists, ranges and steps',
            left(p_cron, 80)));
    ELSIF v_fields[6] = '*' AND NOT EXISTS (
        SELECT 1 FROM unnest(v_days) d, unnest(v_months) m
         WHERE d <= CASE WHEN m = 2 THEN 29 WHEN m IN (4, 6, 9, 11) THEN 30 ELSE 31 END) THEN
        PERFORM gristmill.refuse('cron', format('is ''%s'', which never fires', left(p_cron, 80)));
    END IF;
END
$$;

-- Declares a schedule, or declares it anew: true when there was none of the name.
-- Say cron or every. Fires before now count as decided.
CREATE FUNCTION gristmill.add_schedule(
    name text, queue text, cron text DEFAULT NULL, every interval DEFAULT NULL,
    payload jsonb DEFAULT '{}', zone text DEFAULT 'UTC', missed text DEFAULT 'once',
    overlap text DEFAULT 'allow'
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_text text;
    v_new  boolean;
BEGIN
    PERFORM gristmill.must_be('name', $1 IS NULL, 'the schedule''s name');
    PERFORM gristmill.check_name('name', $1);
    PERFORM gristmill.known_queue($2);
    IF num_nonnulls($3, $4) <> 1 THEN
        PERFORM gristmill.refuse('cron', 'and every are two ways to say when: say one of them');
    ELSIF $3 IS NOT NULL THEN
        PERFORM gristmill.check_cron($3);
    ELSIF extract(epoch FROM $4) NOT BETWEEN 1 AND 31622400 THEN
        PERFORM gristmill.refuse('every', format('is %s: it is from a second to 366 days', $4));
    END IF;
    PERFORM gristmill.must_be('payload', $5 IS NULL, 'JSON: what the schedule puts');
    IF octet_length($5::text) > 1048576 THEN
        PERFORM gristmill.refuse('payload',
            format('has %s bytes and 1048576 are allowed', octet_length($5::text)));
    ELSIF $6 IS NULL OR $6 !~ '^(UTC|[A-Z][A-Za-z0-9_+-]*/[A-Za-z0-9_+/-]+)$'
       OR NOT EXISTS (SELECT 1 FROM pg_timezone_names z WHERE z.name = $6) THEN
        PERFORM gristmill.refuse('zone', format('is %s: it is a name like Europe/Athens',
            coalesce('''' || left($6, 80) || '''', 'null')));
    ELSIF $7 IS NULL OR $7 NOT IN ('once', 'skip', 'all') THEN
        PERFORM gristmill.refuse('missed',
            format('is %s: it is once, skip or all', coalesce(left($7, 80), 'null')));
    ELSIF $8 IS NULL OR $8 NOT IN ('allow', 'skip') THEN
        PERFORM gristmill.refuse('overlap',
            format('is %s: it is allow or skip', coalesce(left($8, 80), 'null')));
    END IF;
    v_text := jsonb_strip_nulls(jsonb_build_object('queue', $2, 'cron', $3,
        'every', (extract(epoch FROM $4) * 1000000)::bigint, 'zone', $6, 'encoding', 'json',
        'missed', $7, 'overlap', $8))::text;
    -- One declaration at a time: a row that is not there cannot be locked.
    PERFORM 1 FROM gristmill.meta m FOR UPDATE;
    v_new := NOT EXISTS (SELECT 1 FROM gristmill.schedule s WHERE s.name = $1);
    INSERT INTO gristmill.schedule (name, declared, payload, decided_until, last_tasks, created_at)
    VALUES ($1, v_text, convert_to($5::text, 'UTF8'), clock_timestamp(), '{}', clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET declared = excluded.declared, payload = excluded.payload;
    RETURN v_new;
END
$$;

-- Refuses a name that no schedule has.
CREATE FUNCTION gristmill.known_schedule(p_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM gristmill.must_be('name', p_name IS NULL, 'a schedule''s name');
    -- Nobody else changes it meanwhile.
    PERFORM 1 FROM gristmill.schedule s WHERE s.name = p_name FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no schedule ''%''', p_name
            USING ERRCODE = 'GM404', COLUMN = 'name';
    END IF;
END
$$;

-- A paused schedule does not fire. True when it was not paused before.
CREATE FUNCTION gristmill.pause_schedule(name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_was boolean;
BEGIN
    PERFORM gristmill.known_schedule($1);
    v_was := (SELECT s.paused FROM gristmill.schedule s WHERE s.name = $1);
    UPDATE gristmill.schedule s SET paused = true, paused_by = session_user::text
     WHERE s.name = $1;
    RETURN NOT v_was;
END
$$;

-- Goes on from now: what it would have fired meanwhile is not made up for. A run
-- that was asked for by hand, of a schedule whose finder is code, still is.
CREATE FUNCTION gristmill.resume_schedule(name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_was boolean;
    v_now timestamptz := clock_timestamp();
BEGIN
    PERFORM gristmill.known_schedule($1);
    v_was := (SELECT s.paused FROM gristmill.schedule s WHERE s.name = $1);
    UPDATE gristmill.schedule s
       SET paused = false, paused_by = NULL, decided_until = greatest(s.decided_until, v_now),
           last_fire = CASE WHEN s.payload IS NULL AND s.last_fire > s.decided_until
                            THEN greatest(v_now, greatest(s.decided_until, v_now)
                                                 + interval '1 microsecond')
                            ELSE s.last_fire END
     WHERE s.name = $1 AND s.paused;
    RETURN v_was;
END
$$;

-- Fires a schedule now, paused or not: outcome is fired (id), overlaps (id: the task
-- of the fire before, which stands, where the schedule says so), asked (its finder is
-- code, which the program that has it runs) or refused (reason). Decides nothing: the
-- next fire by the rule comes as if this had not been.
CREATE FUNCTION gristmill.fire_schedule(name text)
RETURNS TABLE (outcome text, id bigint, reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := clock_timestamp();
    v_fired gristmill.schedule;
    v_said  jsonb;
    v_task  jsonb;
    v_put   record;
BEGIN
    PERFORM gristmill.known_schedule($1);
    SELECT s.* INTO v_fired FROM gristmill.schedule s WHERE s.name = $1;
    v_said := v_fired.declared::jsonb;
    v_task := coalesce(v_said -> 'task', '{}');
    IF v_fired.payload IS NULL THEN
        UPDATE gristmill.schedule s
           SET last_fire = greatest(v_now, s.decided_until + interval '1 microsecond')
         WHERE s.name = $1;
        outcome := 'asked';
        RETURN NEXT;
        RETURN;
    END IF;
    IF v_said ->> 'overlap' = 'skip' THEN
        SELECT u.id INTO id FROM unnest(v_fired.last_tasks) WITH ORDINALITY AS u (id, nth)
         CROSS JOIN LATERAL gristmill.standing(u.id) s
         WHERE s.state IN ('pending', 'processing') ORDER BY u.nth LIMIT 1;
        IF FOUND THEN
            outcome := 'overlaps';
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    SELECT * INTO v_put FROM gristmill.put_many(v_said ->> 'queue', ARRAY[v_fired.payload],
        p_encodings => ARRAY[CASE v_said ->> 'encoding' WHEN 'json' THEN 0 WHEN 'msgpack' THEN 1
                                                        ELSE 2 END::smallint],
        p_keys => ARRAY[v_task ->> 'key'], p_groups => ARRAY[v_task ->> 'group'],
        p_sources => ARRAY[v_task ->> 'source'],
        p_priorities => ARRAY[coalesce((v_task ->> 'priority')::smallint, 0::smallint)],
        p_delays => ARRAY[(v_task ->> 'delay')::bigint],
        p_headers => ARRAY[(coalesce(v_task -> 'headers', '{}') || jsonb_build_object(
            'gristmill-schedule', $1, 'gristmill-fire',
            to_char(v_now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')))::text],
        p_settings => CASE WHEN v_task ? 'settings' THEN ARRAY[(v_task -> 'settings')::text] END);
    IF NOT v_put.is_known THEN
        PERFORM gristmill.known_queue(v_said ->> 'queue');
    ELSIF v_put.outcomes[1] = 3 THEN
        outcome := 'refused';
        reason := regexp_replace(v_put.details[1], '^invalid:', '');
    ELSE
        outcome := 'fired';
        id := v_put.ids[1];
        UPDATE gristmill.schedule s SET last_fire = v_now, last_tasks = ARRAY[v_put.ids[1]]
         WHERE s.name = $1;
        PERFORM gristmill.wake(v_said ->> 'queue');
    END IF;
    RETURN NEXT;
END
$$;

-- Its tasks stay. True when there was one.
CREATE FUNCTION gristmill.remove_schedule(name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM gristmill.must_be('name', $1 IS NULL, 'a schedule''s name');
    DELETE FROM gristmill.schedule s WHERE s.name = $1;
    RETURN FOUND;
END
$$;

-- All schedules, by name. payload is null where a finder decides, or where it is
-- no JSON.
CREATE FUNCTION gristmill.schedules()
RETURNS TABLE (
    name text, queue text, cron text, every interval, zone text, payload jsonb, missed text,
    overlap text, paused boolean, paused_by text, last_fire timestamptz, created_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.name::text, d.said ->> 'queue', d.said ->> 'cron',
           gristmill.span((d.said ->> 'every')::bigint), d.said ->> 'zone',
           gristmill.as_json(s.payload, CASE d.said ->> 'encoding' WHEN 'json' THEN 0 ELSE 2 END
               ::smallint),
           d.said ->> 'missed', d.said ->> 'overlap', s.paused, s.paused_by, s.last_fire,
           s.created_at
      FROM gristmill.schedule s
     CROSS JOIN LATERAL (SELECT s.declared::jsonb AS said) d
     ORDER BY s.name;
END
$$;
