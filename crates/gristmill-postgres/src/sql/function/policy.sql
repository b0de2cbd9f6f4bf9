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

-- Where within the jitter an attempt falls: the server's own hash of the task,
-- seeded by its claim. Hash partitions rest on it, so it is the same in every
-- version; the library has it as well (policy/backoff.rs).
CREATE FUNCTION gristmill.spread(p_id bigint, p_claims integer) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ((hashint8extended(p_id, p_claims) >> 11) & ((1::bigint << 53) - 1))::double precision
           / 9007199254740992
$$;

-- How many microseconds a task waits after the attempt that had p_returns before
-- it. Shifted only where nothing is shifted out.
CREATE FUNCTION gristmill.backoff(
    p_base bigint, p_cap bigint, p_jitter boolean, p_returns integer, p_spread double precision
) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_jitter
                THEN trunc((CASE WHEN p_returns >= 62 OR p_base > (p_cap >> p_returns) THEN p_cap
                                 ELSE p_base << p_returns END)::double precision * p_spread)
                ELSE CASE WHEN p_returns >= 62 OR p_base > (p_cap >> p_returns) THEN p_cap
                          ELSE p_base << p_returns END END::bigint
$$;

-- A rate as a token bucket, kept as the instant at which it is full (policy/rate.rs has
-- the same): p_tasks in p_time microseconds, at most p_burst at once.
-- In what time so many tokens come, in whole microseconds.
CREATE FUNCTION gristmill.token_time(p_tasks integer, p_time bigint, p_tokens bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT div(p_tokens::numeric * p_time + p_tasks - 1, p_tasks)::bigint
$$;

-- How far from full it is, in microseconds: never more than all of it, however far ahead
-- the clock was that said so.
CREATE FUNCTION gristmill.missing(
    p_tasks integer, p_time bigint, p_burst integer, p_full_at timestamptz, p_now timestamptz
) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT least(greatest(coalesce(extract(epoch FROM p_full_at - p_now) * 1000000, 0), 0),
                 gristmill.token_time(p_tasks, p_time, p_burst))::bigint
$$;

-- How many tokens are there.
CREATE FUNCTION gristmill.tokens(
    p_tasks integer, p_time bigint, p_burst integer, p_full_at timestamptz, p_now timestamptz
) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT greatest(0, div(p_burst::numeric * p_time
        - gristmill.missing(p_tasks, p_time, p_burst, p_full_at, p_now)::numeric * p_tasks,
        p_time))::integer
$$;

-- How many microseconds until there is one.
CREATE FUNCTION gristmill.token_wait(
    p_tasks integer, p_time bigint, p_burst integer, p_full_at timestamptz, p_now timestamptz
) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT greatest(0, gristmill.missing(p_tasks, p_time, p_burst, p_full_at, p_now)
        - div((p_burst - 1)::numeric * p_time, p_tasks))::bigint
$$;

-- What a task says in place of its queue's setting: a number from p_least on, or what
-- the queue says. Whatever else stands there is not this function's to refuse, for it is
-- asked for many tasks at once. Not for those that say nothing: it has the cost of an
-- operator, or what it is given to would be called a task as well.
CREATE FUNCTION gristmill.own_number(
    p_settings jsonb, p_path text[], p_least bigint, p_queues bigint
) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1 AS $$
DECLARE
    v_said jsonb := p_settings #> p_path;
BEGIN
    IF jsonb_typeof(v_said) = 'number' AND v_said::numeric BETWEEN p_least AND 2147483647000000 THEN
        RETURN trunc(v_said::numeric);
    END IF;
    RETURN p_queues;
END
$$;

-- The same of max_attempts, where null is without limit.
CREATE FUNCTION gristmill.own_attempts(p_settings jsonb, p_queues integer) RETURNS integer
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1 AS $$
BEGIN
    IF jsonb_typeof(p_settings -> 'max_attempts') = 'null' THEN
        RETURN NULL;
    END IF;
    RETURN least(gristmill.own_number(p_settings, '{max_attempts}', 1, p_queues), 2147483647);
END
$$;

-- A text cut to p_bytes in its middle, at characters' borders, with a note of how
-- much was left out: what went wrong stands at an error's beginning or at its end.
CREATE FUNCTION gristmill.cut(p_text text, p_bytes integer DEFAULT 4096) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    -- The note has up to 48 bytes.
    v_half integer := (p_bytes - 48) / 2;
    v_head text;
    v_tail text;
BEGIN
    IF p_text IS NULL OR octet_length(p_text) <= p_bytes THEN
        RETURN p_text;
    END IF;
    v_head := left(p_text, v_half);
    WHILE octet_length(v_head) > v_half LOOP
        -- A character has at most four bytes: this many are surely too many.
        v_head := left(v_head, -greatest((octet_length(v_head) - v_half) / 4, 1));
    END LOOP;
    v_tail := right(p_text, v_half);
    WHILE octet_length(v_tail) > v_half LOOP
        v_tail := right(v_tail, -greatest((octet_length(v_tail) - v_half) / 4, 1));
    END LOOP;
    RETURN v_head || E'\n['
        || (octet_length(p_text) - octet_length(v_head) - octet_length(v_tail))
        || E' bytes left out]\n' || v_tail;
END
$$;

-- What an ended attempt makes of its task (attempts and claims include it):
-- became is 0 done, 1 back, 2 failed or 3 cancelled; the other columns are those
-- of a task that goes back, and error is that of one that failed. One SELECT
-- without a table, so that a statement over a thousand tasks has it inside
-- instead of calling it a thousand times.
--   p_at       of retry and release
--   p_started  of release: a handler had begun
--   p_cancel   an operator asked for the task's end
--   p_free     releases after a start that are free
CREATE FUNCTION gristmill.after_attempt(
    p_outcome text, p_error text, p_at timestamptz, p_started boolean, p_cancel boolean,
    p_id bigint, p_attempts integer, p_claims integer, p_expiries smallint, p_releases smallint,
    p_run_at timestamptz, p_prev_run_at timestamptz,
    p_max integer, p_base bigint, p_cap bigint, p_jitter boolean, p_free integer,
    p_now timestamptz
) RETURNS TABLE (
    became smallint, run_at timestamptz, prev_run_at timestamptz, attempts integer, expiries smallint,
    started_releases smallint, released boolean, error text
)
LANGUAGE sql STABLE AS $$
    SELECT (CASE WHEN p_outcome = 'done' THEN 0
                 WHEN p_outcome = 'cancelled' THEN 3
                 -- The operator's wish outlives an attempt that would have come back.
                 WHEN p_cancel AND p_outcome <> 'fail' THEN 3
                 WHEN p_outcome = 'fail' THEN 2
                 WHEN p_outcome = 'release' AND (NOT p_started OR p_releases < p_free) THEN 1
                 WHEN p_attempts >= p_max THEN 2
                 ELSE 1 END)::smallint,
           -- Not ahead of now: it was due when it was claimed, so the clock went back.
           CASE WHEN p_outcome = 'release' THEN coalesce(p_at, least(p_run_at, p_now))
                WHEN p_outcome = 'retry' THEN p_at
                -- The first expiry keeps the old place.
                WHEN p_outcome = 'expired' AND p_expiries = 0 THEN least(p_run_at, p_now)
                -- Not by later(): it names what it is given twice, and would be
                -- called a task instead of being part of the statement.
                ELSE least(p_now + gristmill.span(gristmill.backoff(p_base, p_cap,
                         p_jitter, greatest(p_attempts - 1, 0),
                         gristmill.spread(p_id, p_claims))),
                         timestamptz '9999-12-29 23:59:59+00') END,
           CASE WHEN p_outcome = 'release' AND (NOT p_started OR p_releases < p_free)
                THEN p_prev_run_at ELSE p_run_at END,
           CASE WHEN p_outcome = 'release' AND (NOT p_started OR p_releases < p_free)
                THEN greatest(p_attempts - 1, 0) ELSE p_attempts END,
           (CASE WHEN p_outcome = 'expired' THEN least(p_expiries + 1, 32767)
                 ELSE p_expiries END)::smallint,
           (CASE WHEN p_outcome = 'release' AND p_started AND p_releases < p_free
                 THEN p_releases + 1 ELSE p_releases END)::smallint,
           p_outcome = 'release',
           CASE WHEN p_outcome = 'release'
                THEN format('released %s times after a start; then every release counts, '
                         'and %s attempts are used up', p_releases, p_attempts)
                WHEN p_error IS NOT NULL THEN p_error
                WHEN p_outcome = 'retry'
                THEN format('another run was asked for, but %s attempts are used up', p_attempts)
                ELSE '' END
$$;
