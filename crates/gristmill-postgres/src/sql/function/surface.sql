-- The surface for any client of the database: producers and workers that speak
-- nothing but SQL (operators: operators.sql). Thin wrappers of the functions
-- the Rust store uses; each call is atomic and joins the caller's transaction.
--
-- They run with the rights of the schema's owner, so that a role needs EXECUTE on
-- what it may call and nothing else (roles.sql), with a search_path of their own,
-- so that nothing of the caller's is found instead of what is meant. The clock is
-- the server's: what takes a time from its caller is not for clients. No name has
-- two functions: a driver that leaves the types of its parameters open could not
-- say which one it means.

-- Puts one task with a JSON payload. outcome: enqueued, duplicate, replaced or
-- refused (reason: queue_full, no_such_subject, subject_table_gone, id_reused,
-- or a sentence).
CREATE FUNCTION gristmill.enqueue(
    queue text, payload jsonb, key text DEFAULT NULL, delay interval DEFAULT NULL,
    run_at timestamptz DEFAULT NULL, priority integer DEFAULT 0, "group" text DEFAULT NULL,
    source text DEFAULT NULL, caller_id text DEFAULT NULL, headers jsonb DEFAULT NULL,
    timeout interval DEFAULT NULL, max_attempts integer DEFAULT NULL, backoff jsonb DEFAULT NULL
) RETURNS TABLE (outcome text, id bigint, reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_at timestamptz := $5;
BEGIN
    IF $2 IS NULL THEN
        PERFORM gristmill.refuse('payload', 'is null: it is JSON, and JSON''s null is ''null''');
    ELSIF $3 = '' OR octet_length($3) > 512 THEN
        PERFORM gristmill.check_text('key', $3);
    ELSIF $9 = '' OR octet_length($9) > 512 THEN
        PERFORM gristmill.check_text('caller_id', $9);
    END IF;
    -- Most puts say nothing else.
    IF num_nonnulls($4, $5, $7, $8, $10) > 0 OR $6 IS DISTINCT FROM 0 THEN
        PERFORM gristmill.check_said($4, $5, $6, $7, $8, $10);
        -- By the calendar: a month is not thirty days.
        v_at := coalesce($5, gristmill.later(clock_timestamp(), $4));
    END IF;
    RETURN QUERY SELECT e.outcome, e.id, e.reason FROM gristmill.put_json(
        $1, ARRAY[$2], CASE WHEN $3 IS NOT NULL THEN ARRAY[$3] END,
        CASE WHEN v_at IS NOT NULL THEN ARRAY[v_at] END,
        CASE WHEN $6 <> 0 THEN ARRAY[$6::smallint] END,
        CASE WHEN $7 IS NOT NULL THEN ARRAY[$7] END,
        CASE WHEN $8 IS NOT NULL THEN ARRAY[$8] END,
        CASE WHEN $9 IS NOT NULL THEN ARRAY[$9] END, $10,
        CASE WHEN num_nonnulls($11, $12, $13) > 0 THEN gristmill.own_settings($11, $12, $13) END) e;
END
$$;

-- Puts many tasks with JSON payloads in one step, one row a task, in order. Lists
-- have one entry a task, or are left out; where an entry is null, what is said for
-- all holds, or the default.
CREATE FUNCTION gristmill.enqueue_many(
    queue text, payloads jsonb[], keys text[] DEFAULT NULL, delay interval DEFAULT NULL,
    run_at timestamptz DEFAULT NULL, priority integer DEFAULT 0, "group" text DEFAULT NULL,
    source text DEFAULT NULL, caller_ids text[] DEFAULT NULL, headers jsonb DEFAULT NULL,
    delays interval[] DEFAULT NULL, run_ats timestamptz[] DEFAULT NULL,
    priorities integer[] DEFAULT NULL, groups text[] DEFAULT NULL, sources text[] DEFAULT NULL,
    timeout interval DEFAULT NULL, max_attempts integer DEFAULT NULL, backoff jsonb DEFAULT NULL
) RETURNS TABLE (nth integer, outcome text, id bigint, reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_count      integer := cardinality($2);
    v_now        timestamptz := clock_timestamp();
    v_at         timestamptz;
    v_ats        timestamptz[];
    v_priorities smallint[];
    v_both       bigint;
BEGIN
    PERFORM gristmill.must_be('payloads', $2 IS NULL, 'a list of JSON');
    PERFORM gristmill.check_list('payloads', $2, v_count);
    PERFORM gristmill.check_list('keys', $3, v_count);
    PERFORM gristmill.check_list('caller_ids', $9, v_count);
    IF v_count > 10000 THEN
        PERFORM gristmill.refuse('payloads',
            format('has %s entries and 10000 are allowed', v_count));
    ELSIF array_position($2, NULL) IS NOT NULL THEN
        PERFORM gristmill.refuse('payloads', format('has null as entry %s: it is JSON, and '
            'JSON''s null is ''null''', array_position($2, NULL)));
    END IF;
    PERFORM gristmill.check_texts('keys', $3);
    PERFORM gristmill.check_texts('caller_ids', $9);
    PERFORM gristmill.check_said($4, $5, $6, $7, $8, $10);
    IF num_nonnulls($11, $12, $13, $14, $15) > 0 THEN
        PERFORM gristmill.check_list('delays', $11, v_count);
        PERFORM gristmill.check_list('run_ats', $12, v_count);
        PERFORM gristmill.check_list('priorities', $13, v_count);
        PERFORM gristmill.check_list('groups', $14, v_count);
        PERFORM gristmill.check_list('sources', $15, v_count);
        PERFORM gristmill.check_delay('delays', d) FROM unnest($11) d;
        PERFORM gristmill.check_time('run_ats', a) FROM unnest($12) a;
        PERFORM gristmill.check_priority('priorities', p) FROM unnest($13) p;
        PERFORM gristmill.check_texts('groups', $14);
        PERFORM gristmill.check_texts('sources', $15);
        SELECT min(u.nth) INTO v_both
          FROM unnest($11, $12) WITH ORDINALITY AS u (delay, at, nth)
         WHERE u.delay IS NOT NULL AND u.at IS NOT NULL;
        IF v_both IS NOT NULL THEN
            PERFORM gristmill.refuse('delays',
                format('and run_ats both have an entry %s: say one of them', v_both));
        END IF;
    END IF;
    v_at := coalesce($5, gristmill.later(v_now, $4));
    IF num_nonnulls($11, $12) > 0 THEN
        -- One instant for all that begin now: they stand in the order of the list.
        v_ats := ARRAY(SELECT coalesce(u.at, gristmill.later(v_now, u.delay), v_at, v_now)
                         FROM unnest($11, $12) WITH ORDINALITY AS u (delay, at, nth)
                        ORDER BY u.nth);
    ELSIF v_at IS NOT NULL THEN
        v_ats := array_fill(v_at, ARRAY[v_count]);
    END IF;
    IF $13 IS NOT NULL OR $6 <> 0 THEN
        v_priorities := gristmill.one_each($13::smallint[], $6::smallint, v_count);
    END IF;
    RETURN QUERY SELECT e.nth, e.outcome, e.id, e.reason
      FROM gristmill.put_json($1, $2, $3, v_ats, v_priorities,
        gristmill.one_each($14, $7, v_count), gristmill.one_each($15, $8, v_count), $9, $10,
        CASE WHEN num_nonnulls($16, $17, $18) > 0 THEN gristmill.own_settings($16, $17, $18) END) e;
END
$$;

-- What a list says of each task, with what is said of all where it says nothing;
-- null where nothing is said.
CREATE FUNCTION gristmill.one_each(p_list anyarray, p_all anyelement, p_count integer)
RETURNS anyarray
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF p_list IS NULL THEN
        RETURN CASE WHEN p_all IS NOT NULL THEN array_fill(p_all, ARRAY[p_count]) END;
    END IF;
    RETURN ARRAY(SELECT coalesce(u.one, p_all)
                   FROM unnest(p_list) WITH ORDINALITY AS u (one, nth) ORDER BY u.nth);
END
$$;

-- Both of them, with lists that are as they should be.
CREATE FUNCTION gristmill.put_json(
    p_queue text, p_payloads jsonb[], p_keys text[], p_run_ats timestamptz[],
    p_priorities smallint[], p_groups text[], p_sources text[], p_caller_ids text[],
    p_headers jsonb, p_settings jsonb
) RETURNS TABLE (nth integer, outcome text, id bigint, reason text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_bytes bytea[];
    v_put   record;
    v_count integer := cardinality(p_payloads);
    v_none  text[] := array_fill(NULL::text, ARRAY[v_count]);
BEGIN
    v_bytes := ARRAY(SELECT convert_to(p.payload::text, 'UTF8')
                       FROM unnest(p_payloads) WITH ORDINALITY AS p (payload, nth) ORDER BY p.nth);
    PERFORM gristmill.refuse(CASE v_count WHEN 1 THEN 'payload' ELSE 'payloads' END,
            format('has %s bytes and 1048576 are allowed', octet_length(b)))
       FROM unnest(v_bytes) b WHERE octet_length(b) > 1048576;
    SELECT * INTO v_put FROM gristmill.put_many(p_queue, v_bytes,
        p_keys => CASE WHEN p_keys <> v_none THEN p_keys END, p_groups => p_groups,
        p_sources => p_sources, p_priorities => p_priorities, p_run_ats => p_run_ats,
        p_caller_ids => CASE WHEN p_caller_ids <> v_none THEN p_caller_ids END,
        p_headers => CASE WHEN p_headers IS NOT NULL
                          THEN array_fill(p_headers::text, ARRAY[v_count]) END,
        p_settings => CASE WHEN p_settings IS NOT NULL
                           THEN array_fill(p_settings::text, ARRAY[v_count]) END);
    IF NOT v_put.is_known THEN
        PERFORM gristmill.known_queue(p_queue);
    END IF;
    RETURN QUERY
    SELECT i, (ARRAY['enqueued', 'duplicate', 'replaced', 'refused'])
                  [coalesce(v_put.outcomes[i], 0) + 1], v_put.ids[i],
           -- A sentence of the store's own has a word for programs in front.
           regexp_replace(v_put.details[i], '^invalid:', '')
      FROM generate_series(1, v_count) i;
END
$$;

-- JSON where the payload is, else null: a claim must not fail for one task.
CREATE FUNCTION gristmill.as_json(p_payload bytea, p_encoding smallint) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
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

-- For how many microseconds a claim takes tasks that says nothing of it: as long
-- as somebody declared, else three minutes. The library's own default is shorter,
-- but its workers prolong their leases by themselves.
CREATE FUNCTION gristmill.declared_lease(p_queue integer) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_queue record;
BEGIN
    SELECT q.lease, q.declared, q.overridden INTO v_queue
      FROM gristmill.queue q WHERE q.number = p_queue;
    IF coalesce(v_queue.overridden::jsonb -> 'settings' ? 'lease', false)
       OR v_queue.declared::jsonb @? '$[*].settings.lease' THEN
        RETURN extract(epoch FROM v_queue.lease) * 1000000;
    END IF;
    RETURN 180000000;
END
$$;

-- Takes due tasks under a new lease. Every row has the same token: it settles
-- and extends. payload is null where it is not JSON; raw always has the bytes. timeout
-- is what the put said of this task: for the worker to keep, for nobody else can.
--
-- Each claim does a share of what time brings: where no Gristmill process looks
-- after the store, claims do. In the caller's transaction all that would be held
-- for as long as the caller likes, so there a claim does only what nobody minds. A
-- statement of a driver that binds parameters looks like one of the caller's. What
-- is un-blocked here is the next claim's.
CREATE FUNCTION gristmill.claim(
    queue text, "limit" integer DEFAULT 1, lease_seconds double precision DEFAULT NULL,
    source text DEFAULT NULL, worker text DEFAULT NULL
) RETURNS TABLE (
    id bigint, token uuid, payload jsonb, raw bytea, headers jsonb, key text, "group" text,
    source_of text, priority smallint, attempt integer, claims integer, created_at timestamptz,
    run_at timestamptz, lease_until timestamptz, concurrent integer, slot integer,
    timeout interval, checkpoint bytea
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_token uuid := gristmill.new_token();
    v_queue integer := gristmill.known_queue($1);
    v_lease bigint;
BEGIN
    IF $2 IS NULL OR $2 < 1 THEN
        PERFORM gristmill.refuse('limit',
            format('is %s: it is 1 or more', coalesce($2::text, 'null')));
    ELSIF num_nonnulls($3, $4, $5) > 0 THEN
        PERFORM gristmill.check_lease($3);
        PERFORM gristmill.check_text('source', $4);
        PERFORM gristmill.check_name('worker', $5);
    END IF;
    v_lease := coalesce(($3 * 1000000)::bigint, gristmill.declared_lease(v_queue));
    RETURN QUERY
    SELECT c.id, v_token, gristmill.as_json(c.payload, c.encoding), c.payload, c.headers::jsonb,
           c.key, c.grp, c.source, c.priority, c.attempt, c.claims, c.created_at, c.run_at,
           c.now + gristmill.span(c.lease), c.concurrent, c.slot,
           CASE WHEN c.settings IS NOT NULL
                THEN gristmill.span(gristmill.own_number(c.settings::jsonb, '{timeout}', 1, NULL)) END,
           c.checkpoint
      FROM gristmill.claim_tasks($1, least($2, 1000), v_lease,
               coalesce($5, 'sql-' || pg_backend_pid()), $4, v_token) c
     WHERE c.id IS NOT NULL
     ORDER BY c.priority, c.run_at, c.id;
    -- After the claim, which may have to wait for another one's key: whoever waits
    -- with something in his hands may be waited for.
    IF transaction_timestamp() = statement_timestamp() THEN
        PERFORM gristmill.do_share();
    ELSE
        PERFORM gristmill.do_some(v_queue);
    END IF;
END
$$;

-- How a settlement was answered, in a word.
CREATE FUNCTION gristmill.settle(
    p_id bigint, p_token uuid, p_outcome text, p_error text, p_at timestamptz, p_started boolean,
    p_result bytea DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_set record;
BEGIN
    IF p_id IS NULL OR p_token IS NULL THEN
        PERFORM gristmill.check_held(p_id, p_token);
    END IF;
    SELECT * INTO v_set FROM gristmill.settle_many(ARRAY[p_token], ARRAY[p_id],
        ARRAY[p_outcome], ARRAY[gristmill.cut(p_error)], ARRAY[p_at],
        p_started => ARRAY[p_started],
        p_results => CASE WHEN p_result IS NOT NULL THEN ARRAY[p_result] END,
        p_result_encodings => CASE WHEN p_result IS NOT NULL THEN ARRAY[0::smallint] END);
    RETURN (ARRAY['recorded', 'already_recorded', 'gone', 'lease_lost'])
               [coalesce(v_set.answers[1], 0) + 1];
END
$$;

-- Settlements. All answer recorded, already_recorded, gone or lease_lost; none
-- of these is an error, and all but the first changed nothing. They are carried
-- out as the transaction commits: a lease that is lost before that makes the
-- commit fail. What the worker returns for who waits is kept as its queue says.
CREATE FUNCTION gristmill.complete(id bigint, token uuid, result jsonb DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_result bytea := convert_to($3::text, 'UTF8');
BEGIN
    IF octet_length(v_result) > 65536 THEN
        PERFORM gristmill.refuse('result',
            format('has %s bytes and 65536 are allowed', octet_length(v_result)));
    END IF;
    RETURN gristmill.settle($1, $2, 'done', NULL, NULL, true, v_result);
END
$$;

-- Completes many tasks of one claim; returns how many were recorded.
CREATE FUNCTION gristmill.complete_many(ids bigint[], token uuid) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_set record;
BEGIN
    PERFORM gristmill.must_be('ids', $1 IS NULL, 'a list of tasks'' numbers');
    PERFORM gristmill.check_list('ids', $1, cardinality($1));
    PERFORM gristmill.must_be('token', $2 IS NULL, 'the token of their claim');
    IF array_position($1, NULL) IS NOT NULL THEN
        PERFORM gristmill.refuse('ids', format('has null as entry %s', array_position($1, NULL)));
    ELSIF cardinality($1) > 10000 THEN
        PERFORM gristmill.refuse('ids',
            format('has %s entries and 10000 are allowed', cardinality($1)));
    ELSIF $1 = '{}' THEN
        RETURN 0;
    END IF;
    SELECT * INTO v_set FROM gristmill.settle_many(array_fill($2, ARRAY[cardinality($1)]), $1);
    RETURN cardinality($1) - coalesce((SELECT count(*) FROM unnest(v_set.answers) a WHERE a > 0), 0);
END
$$;

-- It went wrong: retried with the queue's backoff, or failed when its attempts
-- are used up.
CREATE FUNCTION gristmill.error(id bigint, token uuid, error text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM gristmill.must_be('error', $3 IS NULL, 'what went wrong');
    RETURN gristmill.settle($1, $2, 'error', $3, NULL, true);
END
$$;

-- Again after a time the worker names; counts as an attempt.
CREATE FUNCTION gristmill.retry(
    id bigint, token uuid, after interval, reason text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM gristmill.must_be('after', $3 IS NULL, 'a time to wait');
    PERFORM gristmill.check_delay('after', $3);
    RETURN gristmill.settle($1, $2, 'retry', $4, gristmill.later(clock_timestamp(), $3), true);
END
$$;

-- It can never succeed: failed now.
CREATE FUNCTION gristmill.fail(id bigint, token uuid, error text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM gristmill.must_be('error', $3 IS NULL, 'what went wrong');
    RETURN gristmill.settle($1, $2, 'fail', $3, NULL, true);
END
$$;

-- Gives it back; the attempt does not count (after a start, twenty times).
CREATE FUNCTION gristmill.release(
    id bigint, token uuid, after interval DEFAULT NULL, started boolean DEFAULT true
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM gristmill.check_delay('after', $3);
    PERFORM gristmill.must_be('started', $4 IS NULL, 'true or false');
    RETURN gristmill.settle($1, $2, 'release', NULL, gristmill.later(clock_timestamp(), $3), $4);
END
$$;

-- Prolongs a lease, for the time it was made for where nothing is said. extended is
-- false when it is lost: stop working. cancelled: stop these and settle nothing but
-- cancel; lost: their subject is gone, there is nothing to settle.
CREATE FUNCTION gristmill.extend(token uuid, lease_seconds double precision DEFAULT NULL)
RETURNS TABLE (extended boolean, cancelled bigint[], lost bigint[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM gristmill.must_be('token', $1 IS NULL, 'the token of a claim');
    PERFORM gristmill.check_lease($2);
    RETURN QUERY SELECT e.extended, e.cancelled, e.lost
      FROM gristmill.extend_many(ARRAY[$1], ARRAY[($2 * 1000000)::bigint]) e;
END
$$;

-- Says how far a task is, in place of what was said before, for people to look at; and
-- prolongs its lease for the time it was made for. Answers kept or lease_lost: stop
-- working. No more than once a second, and in a transaction of its own: the lease's
-- deadline is held until that ends.
CREATE FUNCTION gristmill.progress(
    id bigint, token uuid, done bigint, total bigint DEFAULT NULL, message text DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_is_kept boolean;
BEGIN
    PERFORM gristmill.check_held($1, $2);
    PERFORM gristmill.must_be('done', $3 IS NULL, 'how many are done');
    IF $3 < 0 OR $4 < 0 THEN
        PERFORM gristmill.refuse(CASE WHEN $3 < 0 THEN 'done' ELSE 'total' END,
            format('is %s: it is 0 or more', least($3, $4)));
    END IF;
    SELECT e.extended AND EXISTS (SELECT 1 FROM gristmill.lease l
                                   WHERE l.token = $2 AND $1 = ANY (l.open))
      INTO v_is_kept
      FROM gristmill.extend_many(ARRAY[$2], ARRAY[NULL::bigint], ARRAY[$2], ARRAY[$1],
               ARRAY[$3], ARRAY[$4], ARRAY[left($5, 256)]) e;
    RETURN CASE WHEN v_is_kept THEN 'kept' ELSE 'lease_lost' END;
END
$$;

-- Keeps bytes, up to 64 KiB, for the next attempt of a task, in place of what was kept
-- before; none forget it. Answers kept, gone or lease_lost. The lease is held until the
-- transaction ends, so keep that short.
CREATE FUNCTION gristmill.checkpoint(id bigint, token uuid, state bytea) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM gristmill.check_held($1, $2);
    PERFORM gristmill.must_be('state', $3 IS NULL, 'what is kept; no bytes at all forget it');
    IF octet_length($3) > 65536 THEN
        PERFORM gristmill.refuse('state',
            format('has %s bytes and 65536 are allowed', octet_length($3)));
    END IF;
    RETURN (ARRAY['kept', NULL, 'gone', 'lease_lost'])
        [(gristmill.checkpoint_many(ARRAY[$2], ARRAY[$1], ARRAY[$3]))[1] + 1];
END
$$;

-- Takes back what crashed workers held; returns how many tasks.
CREATE FUNCTION gristmill.requeue_expired(queue text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (SELECT e.taken FROM gristmill.expire(
        CASE WHEN $1 IS NOT NULL THEN gristmill.known_queue($1) END, 10000, NULL, 10,
        clock_timestamp()) e);
END
$$;

-- Tells workers elsewhere that a queue has work. A hint: they also look by
-- themselves. Call it after the commit of the put, not in its transaction:
-- a NOTIFY makes commits wait for each other.
CREATE FUNCTION gristmill.wake(queue text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM gristmill.known_queue($1);
    PERFORM pg_notify('gristmill.wake', $1);
END
$$;
