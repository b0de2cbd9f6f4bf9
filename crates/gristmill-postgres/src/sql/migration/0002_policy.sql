-- What is decided, without reading or writing a table: the same decisions as
-- the library's policies, proved equal by tests. Nobody needs to call these.

-- `at` moved forward, never past the last instant that can be written. Null
-- when nothing is said (least() would ignore a null).
CREATE FUNCTION gristmill.later(p_at timestamptz, p_by interval) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_at + p_by > timestamptz '9999-12-29 23:59:59+00'
                THEN timestamptz '9999-12-29 23:59:59+00' ELSE p_at + p_by END
$$;

CREATE FUNCTION gristmill.span(p_micros bigint) RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT p_micros * interval '1 microsecond'
$$;

-- Where within the jitter an attempt falls: SplitMix64 of the task and its
-- claim. Its arithmetic is that of unsigned 64-bit numbers, which PostgreSQL
-- has not: products are taken as numeric, bits as bigint.
CREATE FUNCTION gristmill.spread(p_id bigint, p_claims integer) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    c_64 constant numeric := 18446744073709551616;
    v_z  numeric;
    v_b  bigint;
BEGIN
    v_z := mod(mod(p_id::numeric + c_64, c_64) * 11400714819323198485
             + p_claims::numeric * 15111065706836454659, c_64);
    v_b := (CASE WHEN v_z >= c_64 / 2 THEN v_z - c_64 ELSE v_z END)::bigint;
    v_b := v_b # ((v_b >> 30) & ((1::bigint << 34) - 1));
    v_z := mod(mod(v_b::numeric + c_64, c_64) * 13787848793156543929, c_64);
    v_b := (CASE WHEN v_z >= c_64 / 2 THEN v_z - c_64 ELSE v_z END)::bigint;
    v_b := v_b # ((v_b >> 27) & ((1::bigint << 37) - 1));
    v_z := mod(mod(v_b::numeric + c_64, c_64) * 10723151780598845931, c_64);
    v_b := (CASE WHEN v_z >= c_64 / 2 THEN v_z - c_64 ELSE v_z END)::bigint;
    v_b := v_b # ((v_b >> 31) & ((1::bigint << 33) - 1));
    RETURN ((v_b >> 11) & ((1::bigint << 53) - 1))::double precision / 9007199254740992;
END
$$;

-- How long a task waits after the attempt that had p_returns before it.
CREATE FUNCTION gristmill.backoff(
    p_base interval, p_cap interval, p_jitter boolean,
    p_returns integer, p_spread double precision
) RETURNS interval
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_base    numeric := extract(epoch FROM p_base) * 1000000;
    v_cap     numeric := extract(epoch FROM p_cap) * 1000000;
    v_longest numeric;
BEGIN
    v_longest := CASE WHEN p_returns >= 63 THEN v_cap
                      ELSE least(v_base * (2::numeric ^ p_returns), v_cap) END;
    IF p_jitter THEN
        v_longest := trunc(v_longest::double precision * p_spread);
    END IF;
    RETURN gristmill.span(v_longest::bigint);
END
$$;

-- A text cut to p_bytes at a character's border.
CREATE FUNCTION gristmill.cut(p_text text, p_bytes integer DEFAULT 4096) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_text text := left(p_text, p_bytes);
BEGIN
    WHILE octet_length(v_text) > p_bytes LOOP
        -- A character has at most four bytes: this many are surely too many.
        v_text := left(v_text, -greatest((octet_length(v_text) - p_bytes) / 4, 1));
    END LOOP;
    RETURN v_text;
END
$$;

-- What an ended attempt makes of its task (attempts and claims include it):
-- kind is 'done', 'cancelled', 'back' or 'failed'.
CREATE TYPE gristmill.next AS (
    kind             text,
    run_at           timestamptz,
    prev_run_at      timestamptz,
    attempts         integer,
    expiries         smallint,
    started_releases smallint,
    released         boolean,
    error            text
);

CREATE FUNCTION gristmill.after_attempt(
    p_task      gristmill.task,
    p_queue     gristmill.queue,
    p_outcome   text,        -- done, error, timed_out, retry, fail, release, cancelled, expired
    p_error     text,
    p_at        timestamptz, -- of retry and release
    p_started   boolean,     -- of release
    p_cancel    boolean,     -- an operator asked for the task's end
    p_free      integer,     -- releases after a start that are free
    p_now       timestamptz
) RETURNS gristmill.next
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_next    gristmill.next;
    v_used_up boolean := coalesce(p_task.attempts >= p_queue.max_attempts, false);
    v_wait    interval;
BEGIN
    IF p_outcome IN ('done', 'cancelled') THEN
        v_next.kind := p_outcome;
        RETURN v_next;
    END IF;
    -- The operator's wish outlives an attempt that would have come back.
    IF p_cancel AND p_outcome <> 'fail' THEN
        v_next.kind := 'cancelled';
        RETURN v_next;
    END IF;
    v_next := ROW('back', p_task.run_at, p_task.run_at, p_task.attempts, p_task.expiries,
                  p_task.started_releases, false, NULL)::gristmill.next;
    IF p_outcome = 'fail' THEN
        v_next.kind := 'failed';
        v_next.error := p_error;
    ELSIF p_outcome = 'release' THEN
        v_next.released := true;
        v_next.run_at := coalesce(p_at, p_task.run_at);
        IF NOT p_started OR p_task.started_releases < p_free THEN
            v_next.prev_run_at := p_task.prev_run_at;
            v_next.attempts := greatest(p_task.attempts - 1, 0);
            v_next.started_releases := p_task.started_releases + p_started::integer;
        ELSIF v_used_up THEN
            v_next.kind := 'failed';
            v_next.error := format('released %s times after a start; then every release counts, '
                'and %s attempts are used up', p_task.started_releases, p_task.attempts);
        END IF;
    ELSIF v_used_up THEN
        v_next.kind := 'failed';
        v_next.error := coalesce(p_error, CASE WHEN p_outcome = 'retry' THEN
            format('another run was asked for, but %s attempts are used up', p_task.attempts)
            ELSE '' END);
    ELSIF p_outcome = 'retry' THEN
        v_next.run_at := p_at;
    ELSIF p_outcome = 'expired' AND p_task.expiries = 0 THEN
        -- The first expiry keeps the old place.
        v_next.expiries := 1;
    ELSE
        v_wait := gristmill.backoff(p_queue.backoff_base, p_queue.backoff_cap,
            p_queue.backoff_jitter, greatest(p_task.attempts - 1, 0),
            gristmill.spread(p_task.id, p_task.claims));
        v_next.run_at := gristmill.later(p_now, v_wait);
        IF p_outcome = 'expired' THEN
            v_next.expiries := least(p_task.expiries + 1, 32767);
        END IF;
    END IF;
    RETURN v_next;
END
$$;
