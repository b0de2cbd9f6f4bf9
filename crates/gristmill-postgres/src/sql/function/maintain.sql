-- What time brings, for those who run no Gristmill process: the chores that such a
-- process does every second (watch.sql), in one call for cron, and in shares
-- with the claims of SQL workers.

-- Does what is due, for about so long: what it did, chore by chore, and whether
-- there is more of it. A chore that meets somebody's open transaction is given up
-- after a tenth of a second and left for another time: this call does many things
-- in one transaction, and whoever waits with something in his hands may be waited
-- for.
--   p_leases  how many ended leases are taken back in a step
--   p_after   the chore that was done last: the next one is the first now, so
--             that a short time comes round to all
CREATE FUNCTION gristmill.do_chores(p_within interval, p_leases integer, p_after text)
RETURNS TABLE (chore text, done bigint, more boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_end   timestamptz := clock_timestamp() + p_within;
    v_set   text := current_setting('lock_timeout');
    v_woken text[];
    v_step  record;
BEGIN
    FOR chore IN
        SELECT c FROM unnest((SELECT d.chores FROM gristmill.due_chores() d)) c
         ORDER BY c <= p_after, c
    LOOP
        EXIT WHEN clock_timestamp() > v_end;
        done := 0;
        more := false;
        BEGIN
            PERFORM set_config('lock_timeout', '100', true);
            LOOP
                IF chore = 'reclaim' THEN
                    SELECT e.taken AS done, e.taken > 0 AS more, NULL::text[] AS woken INTO v_step
                      FROM gristmill.expire(NULL, p_leases, NULL, 10, clock_timestamp()) e;
                ELSE
                    SELECT * INTO v_step FROM gristmill.do_chore(chore);
                END IF;
                done := done + v_step.done;
                more := v_step.more;
                v_woken := v_woken || v_step.woken;
                EXIT WHEN NOT more OR clock_timestamp() > v_end;
            END LOOP;
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected OR serialization_failure THEN
                done := 0;
                more := true;
            WHEN OTHERS THEN
                -- The others are done all the same, and the claim stands.
                RAISE WARNING 'gristmill: chore ''%'' failed: %', chore, SQLERRM
                    USING ERRCODE = SQLSTATE;
                done := 0;
                more := true;
        END;
        RETURN NEXT;
    END LOOP;
    PERFORM set_config('lock_timeout', v_set, true);
    PERFORM pg_notify('gristmill.wake', w) FROM (SELECT DISTINCT unnest(v_woken) AS w) n;
END
$$;

-- The share of a claim: once a second, by one of those who claim.
CREATE FUNCTION gristmill.do_share() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_last record;
    v_now  timestamptz := clock_timestamp();
BEGIN
    SELECT c.key, c.at INTO v_last FROM gristmill.chore c WHERE c.name = 'claims';
    IF v_last.at BETWEEN v_now - interval '1 second' AND v_now
       OR NOT gristmill.my_turn('claims') THEN
        RETURN;
    END IF;
    BEGIN
        INSERT INTO gristmill.chore AS c (name, key, queue, at)
        VALUES ('claims', coalesce((
            SELECT (array_agg(d.chore))[count(*)]
              FROM gristmill.do_chores(interval '20 milliseconds', 16, v_last.key) d), ''), 0, v_now)
        ON CONFLICT (name) DO UPDATE SET key = excluded.key, at = excluded.at;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'gristmill: a claim''s share failed: %', SQLERRM USING ERRCODE = SQLSTATE;
    END;
END
$$;

-- Un-blocks tasks of a queue whose key became free unnoticed, as far as a look at
-- so many blocked ones finds them.
CREATE FUNCTION gristmill.unblock_met(p_queue integer, p_look integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_keys text[];
BEGIN
    v_keys := ARRAY(
        SELECT b.key::text
          FROM (SELECT t.key, t.queue FROM gristmill.task t
                 WHERE t.blocked ORDER BY t.key, t.queue LIMIT p_look) b
         WHERE b.queue = p_queue
           AND (SELECT f.id FROM gristmill.flight f
                 WHERE f.key = b.key AND f.queue = b.queue) IS NULL);
    RETURN CASE WHEN v_keys = '{}' THEN 0
                ELSE gristmill.unblock(p_queue, v_keys, clock_timestamp()) END;
END
$$;

-- Sums up counts that wait to be folded, so many at most: by queue and minute, and
-- stands in their place. Where nothing folds, what readers add up stays short.
CREATE FUNCTION gristmill.sum_up(p_limit integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM gristmill.delta d
         WHERE d.ctid = ANY (ARRAY(SELECT x.ctid FROM gristmill.delta x LIMIT p_limit
                                      FOR UPDATE SKIP LOCKED))
        RETURNING d.*
    )
    INSERT INTO gristmill.delta (at, queue, ready, delayed, blocked, processing, failed_now,
        done_kept, put, duplicate, replaced, refused, claimed, done, retried, failed, released,
        expired, lease_lost, cancelled, discarded, resolved, operator_retried, subject_gone, waits)
    SELECT date_trunc('minute', g.at), g.queue, nullif(sum(g.ready), 0),
           nullif(sum(g.delayed), 0), nullif(sum(g.blocked), 0), nullif(sum(g.processing), 0),
           nullif(sum(g.failed_now), 0), nullif(sum(g.done_kept), 0), nullif(sum(g.put), 0),
           nullif(sum(g.duplicate), 0), nullif(sum(g.replaced), 0), nullif(sum(g.refused), 0),
           nullif(sum(g.claimed), 0), nullif(sum(g.done), 0), nullif(sum(g.retried), 0),
           nullif(sum(g.failed), 0), nullif(sum(g.released), 0), nullif(sum(g.expired), 0),
           nullif(sum(g.lease_lost), 0), nullif(sum(g.cancelled), 0),
           nullif(sum(g.discarded), 0), nullif(sum(g.resolved), 0),
           nullif(sum(g.operator_retried), 0), nullif(sum(g.subject_gone), 0),
           CASE WHEN sum(g.waits[1]) IS NOT NULL THEN
               ARRAY[sum(g.waits[1]), sum(g.waits[2]), sum(g.waits[3]), sum(g.waits[4]),
                     sum(g.waits[5]), sum(g.waits[6]), sum(g.waits[7])] END
      FROM gone g GROUP BY g.queue, date_trunc('minute', g.at);
END
$$;

-- The share of a claim in a transaction that may stay open. It waits for nobody and
-- keeps nobody waiting: what it holds is passed by, no turn is taken, and nothing
-- is put that would then stand unseen. Each look costs something, so most claims
-- only look for what nobody un-blocked.
CREATE FUNCTION gristmill.do_some(p_queue integer) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    c_few  constant integer := 50;
    c_some constant integer := 1000;
    v_now  timestamptz := clock_timestamp();
    v_done bigint;
BEGIN
    IF random() >= 0.03 THEN
        v_done := gristmill.unblock_met(p_queue, c_few);
        RETURN;
    END IF;
    BEGIN
        v_done := gristmill.unblock_met(p_queue, c_some);
        v_done := gristmill.promote(c_some, v_now);
        v_done := gristmill.forget_ids(c_some, v_now);
        v_done := gristmill.forget_done(c_some, v_now);
        v_done := gristmill.forget_failed(c_some, v_now);
        PERFORM gristmill.sum_up(c_some);
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'gristmill: a claim''s share failed: %', SQLERRM USING ERRCODE = SQLSTATE;
    END;
END
$$;

-- Does all that time brings: takes tasks back from workers that died, counts what
-- fell due, un-blocks what was missed, puts again what open transactions left
-- behind, folds counts, forgets what was kept long enough, removes tasks without a
-- subject. For cron where no Gristmill process runs. A row a chore that had
-- something to do; where `more` is true, call again.
CREATE FUNCTION gristmill.maintain(seconds double precision DEFAULT 5)
RETURNS TABLE (chore text, done bigint, more boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM gristmill.must_be('seconds', $1 IS NULL, 'for how long it may take');
    IF $1 NOT BETWEEN 0.01 AND 60 THEN
        PERFORM gristmill.refuse('seconds', format('is %s: it is from 0.01 to 60', $1));
    END IF;
    -- After the clock went back no lease lasts longer than its length.
    PERFORM gristmill.cut_leases(1000);
    RETURN QUERY SELECT d.chore, d.done, d.more
      FROM gristmill.do_chores($1 * interval '1 second', 1000, '') d
     WHERE d.done > 0 OR d.more;
END
$$;
