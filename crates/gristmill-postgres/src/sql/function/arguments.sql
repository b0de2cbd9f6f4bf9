-- What SQL clients may say. Each function takes an argument and its name, and
-- refuses what cannot be one with GM400 and a sentence that begins with the name;
-- the error's field for a column has the name too, for programs. What is stored
-- unchecked is found by a worker, long after the call that could have been told.

-- Says why an argument cannot be one.
CREATE FUNCTION gristmill.refuse(p_argument text, p_why text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% %', p_argument, p_why USING ERRCODE = 'GM400', COLUMN = p_argument;
END
$$;

-- Says that the caller may go on with nothing else: an unknown queue.
CREATE FUNCTION gristmill.no_queue(p_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'there is no queue ''%''', p_name
        USING ERRCODE = 'GM404', COLUMN = 'queue',
              HINT = 'declare it: SELECT gristmill.add_queue(''name'')';
END
$$;

-- The number of the queue that is named.
CREATE FUNCTION gristmill.known_queue(p_name text) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_number integer;
BEGIN
    SELECT q.number INTO v_number FROM gristmill.queue q WHERE q.name = p_name;
    IF p_name IS NULL THEN
        PERFORM gristmill.refuse('queue', 'is null: it is a queue''s name');
    ELSIF v_number IS NULL THEN
        PERFORM gristmill.no_queue(p_name);
    END IF;
    RETURN v_number;
END
$$;

-- Something that has to be said.
CREATE FUNCTION gristmill.must_be(p_argument text, p_is_null boolean, p_what text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_is_null THEN
        PERFORM gristmill.refuse(p_argument, 'is null: it is ' || p_what);
    END IF;
END
$$;

-- A name of a queue, schedule or worker, as the library has it.
CREATE FUNCTION gristmill.check_name(p_argument text, p_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_name !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' THEN
        PERFORM gristmill.refuse(p_argument, format('is ''%s'': it is 1 to 64 letters, digits, '
            '''_'', ''.'' or ''-'', and begins with a letter or digit', left(p_name, 80)));
    END IF;
END
$$;

-- A key, group, source or caller's id.
CREATE FUNCTION gristmill.check_text(p_argument text, p_text text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_text = '' THEN
        PERFORM gristmill.refuse(p_argument, 'is empty: leave it out for none');
    ELSIF octet_length(p_text) > 512 THEN
        PERFORM gristmill.refuse(p_argument,
            format('has %s bytes and 512 are allowed', octet_length(p_text)));
    END IF;
END
$$;

-- The same of each entry of a list.
CREATE FUNCTION gristmill.check_texts(p_argument text, p_texts text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM gristmill.check_text(p_argument, t.text) FROM unnest(p_texts) t (text)
      WHERE t.text = '' OR octet_length(t.text) > 512;
END
$$;

-- A list with one entry a task, p_count of them (null: as many as there are). Its
-- first entry is number 1: another bound would give its entries to other tasks.
CREATE FUNCTION gristmill.check_list(p_argument text, p_list anyarray, p_count integer)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF array_ndims(p_list) > 1 THEN
        PERFORM gristmill.refuse(p_argument, 'is a list of lists: it is one list');
    ELSIF array_lower(p_list, 1) <> 1 THEN
        PERFORM gristmill.refuse(p_argument,
            format('begins with entry %s: it begins with entry 1', array_lower(p_list, 1)));
    ELSIF cardinality(p_list) <> p_count THEN
        PERFORM gristmill.refuse(p_argument, format('has %s entries for %s tasks: it has one each',
            cardinality(p_list), p_count));
    END IF;
END
$$;

CREATE FUNCTION gristmill.check_priority(p_argument text, p_priority integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_priority NOT BETWEEN -32768 AND 32767 THEN
        PERFORM gristmill.refuse(p_argument,
            format('is %s: it is from -32768 to 32767', p_priority));
    END IF;
END
$$;

-- An instant that every store can write down.
CREATE FUNCTION gristmill.check_time(p_argument text, p_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_at NOT BETWEEN timestamptz '1970-01-01 00:00:00+00'
                    AND timestamptz '9999-12-29 23:59:59+00' THEN
        PERFORM gristmill.refuse(p_argument,
            format('is %s: it is from the year 1970 to 9999', p_at));
    END IF;
END
$$;

-- A time to wait.
CREATE FUNCTION gristmill.check_delay(p_argument text, p_delay interval) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF extract(epoch FROM p_delay) NOT BETWEEN 0 AND 3155760000 THEN
        PERFORM gristmill.refuse(p_argument,
            format('is %s: it is from nothing to a hundred years', p_delay));
    END IF;
END
$$;

-- The length of a lease in seconds; null: as declared.
CREATE FUNCTION gristmill.check_lease(p_seconds double precision) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_seconds NOT BETWEEN 0.1 AND 31622400 THEN
        PERFORM gristmill.refuse('lease_seconds',
            format('is %s: it is from 0.1 to 31622400, a year', p_seconds));
    END IF;
END
$$;

-- Headers are an object of texts.
CREATE FUNCTION gristmill.check_headers(p_headers jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_bad  text;
    v_size bigint;
BEGIN
    IF p_headers IS NULL THEN
        RETURN;
    ELSIF jsonb_typeof(p_headers) <> 'object' THEN
        PERFORM gristmill.refuse('headers',
            format('is JSON''s %s: it is an object of texts', jsonb_typeof(p_headers)));
    END IF;
    SELECT min(h.key) FILTER (WHERE jsonb_typeof(h.value) <> 'string' OR h.key = ''),
           sum(octet_length(h.key) + octet_length(h.value #>> '{}'))
      INTO v_bad, v_size FROM jsonb_each(p_headers) h;
    IF v_bad IS NOT NULL THEN
        PERFORM gristmill.refuse('headers',
            format('has ''%s'', which is no text with a name: it is an object of texts', v_bad));
    ELSIF v_size > 4096 THEN
        PERFORM gristmill.refuse('headers', format('has %s bytes and 4096 are allowed', v_size));
    END IF;
END
$$;

-- What holds for a task in place of its queue's settings, in the form that every
-- program reads.
CREATE FUNCTION gristmill.own_settings(p_timeout interval, p_max_attempts integer, p_backoff jsonb)
RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    IF extract(epoch FROM p_timeout) NOT BETWEEN 0.000001 AND 31622400 THEN
        PERFORM gristmill.refuse('timeout',
            format('is %s: it is more than nothing and at most a year', p_timeout));
    ELSIF p_max_attempts < 1 THEN
        PERFORM gristmill.refuse('max_attempts',
            format('is %s: it is 1 or more; 2147483647 is as good as no limit', p_max_attempts));
    ELSIF p_backoff IS NOT NULL AND jsonb_typeof(p_backoff) <> 'object' THEN
        PERFORM gristmill.refuse('backoff',
            format('is %s: it is an object such as {"base": 1, "cap": 60}', p_backoff));
    ELSIF EXISTS (SELECT 1 FROM jsonb_each(p_backoff) b
                   WHERE b.key NOT IN ('base', 'cap', 'jitter')
                      OR b.key = 'jitter' AND jsonb_typeof(b.value) <> 'boolean') THEN
        PERFORM gristmill.refuse('backoff', format('is %s: it has base, cap and jitter, which is '
            'true or false', p_backoff));
    END IF;
    RETURN gristmill.stored_settings(jsonb_strip_nulls(jsonb_build_object(
        'timeout', extract(epoch FROM p_timeout), 'max_attempts', p_max_attempts,
        'backoff', p_backoff)));
END
$$;

-- A task's id and a claim's token, as every settlement names them.
CREATE FUNCTION gristmill.check_held(p_id bigint, p_token uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM gristmill.must_be('id', p_id IS NULL, 'a task''s number');
    PERFORM gristmill.must_be('token', p_token IS NULL, 'the token of its claim');
END
$$;

-- What is said of a task, or of all tasks of a put, besides payloads, keys and ids.
CREATE FUNCTION gristmill.check_said(
    p_delay interval, p_run_at timestamptz, p_priority integer, p_group text, p_source text,
    p_headers jsonb
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_delay IS NOT NULL AND p_run_at IS NOT NULL THEN
        PERFORM gristmill.refuse('delay', 'stands beside run_at: say one of them');
    END IF;
    PERFORM gristmill.check_delay('delay', p_delay);
    PERFORM gristmill.check_time('run_at', p_run_at);
    PERFORM gristmill.must_be('priority', p_priority IS NULL, 'a number, 0 for the usual one');
    PERFORM gristmill.check_priority('priority', p_priority);
    PERFORM gristmill.check_text('group', p_group);
    PERFORM gristmill.check_text('source', p_source);
    PERFORM gristmill.check_headers(p_headers);
END
$$;
