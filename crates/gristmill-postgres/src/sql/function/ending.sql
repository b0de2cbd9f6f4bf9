-- What came of tasks: kept for who waits, and for as long as their queue says.

-- These tasks ended so: who waits for one of them finds it for ten minutes, and is
-- told at the commit. A notice within it, which others rarely are: only where
-- somebody waits.
CREATE FUNCTION gristmill.end_wanted(
    p_ids bigint[], p_ending text, p_error text, p_now timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH told AS (
        DELETE FROM gristmill.wanted w WHERE w.id = ANY (p_ids) RETURNING w.id, w.queue
    )
    INSERT INTO gristmill.ending (id, queue, ending, error, until)
    SELECT DISTINCT t.id, t.queue, p_ending, p_error, gristmill.later(p_now, greatest(
               interval '10 minutes', CASE WHEN p_ending = 'done' THEN q.keep_result END))
      FROM told t JOIN gristmill.queue q ON q.number = t.queue
    ON CONFLICT (id) DO NOTHING;
    IF FOUND THEN
        PERFORM pg_notify('gristmill.wake', '#');
    END IF;
END
$$;

-- These tasks of a queue are done. Of one that says keep_result each is kept.
CREATE FUNCTION gristmill.end_done(p_queue integer, p_ids bigint[], p_now timestamptz)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_keep interval := (SELECT q.keep_result FROM gristmill.queue q WHERE q.number = p_queue);
BEGIN
    PERFORM gristmill.end_wanted(p_ids, 'done', NULL, p_now);
    IF v_keep IS NOT NULL THEN
        INSERT INTO gristmill.ending (id, queue, ending, until)
        SELECT i, p_queue, 'done', gristmill.later(p_now, v_keep) FROM unnest(p_ids) i
        ON CONFLICT (id) DO NOTHING;
    END IF;
END
$$;

-- What handlers returned for these tasks, of which those are done that the answers of
-- their settlements say so (null: all). Kept where the end is, or with the done task.
CREATE FUNCTION gristmill.keep_results(
    p_ids bigint[], p_values bytea[], p_encodings smallint[], p_answers smallint[],
    p_became smallint[], p_now timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH given AS MATERIALIZED (
        SELECT u.id, u.value, u.encoding
          FROM unnest(p_ids, p_values, p_encodings, p_answers, p_became)
            AS u (id, value, encoding, answer, became)
         WHERE u.value IS NOT NULL AND coalesce(u.answer, 0) = 0 AND coalesce(u.became, 0) = 0
           AND (p_answers IS NULL OR u.became = 0)
    ), known AS (
        UPDATE gristmill.ending e
           SET value = g.value, encoding = g.encoding, until = greatest(e.until,
               gristmill.later(p_now, coalesce(q.keep_result, q.keep_done)))
          FROM given g, gristmill.queue q
         WHERE e.id = g.id AND e.ending = 'done' AND q.number = e.queue
        RETURNING e.id
    )
    INSERT INTO gristmill.ending (id, queue, ending, value, encoding, until)
    SELECT g.id, d.queue, 'done', g.value, g.encoding,
           gristmill.later(p_now, coalesce(q.keep_result, q.keep_done))
      FROM given g
      JOIN gristmill.done d ON d.id = g.id
      JOIN gristmill.queue q ON q.number = d.queue
     WHERE q.keep_done IS NOT NULL AND g.id NOT IN (SELECT k.id FROM known k)
    ON CONFLICT (id) DO NOTHING;
END
$$;

-- The end of standing tasks is wanted: of those that a put answered, as far as it says
-- so of each. Not unique, so that nobody waits for somebody else's open transaction.
CREATE FUNCTION gristmill.want(
    p_queue integer, p_ids bigint[], p_settings text[], p_outcomes smallint[], p_now timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO gristmill.wanted (id, queue, until)
    SELECT DISTINCT u.id, p_queue, p_now + interval '1 hour'
      FROM unnest(p_ids, p_settings, p_outcomes) AS u (id, settings, outcome)
     WHERE u.settings LIKE '%wanted%' AND u.settings::jsonb @> '{"wanted": true}'
       AND coalesce(u.outcome, 0) < 3 AND u.id > 0
       AND NOT EXISTS (SELECT 1 FROM gristmill.wanted w WHERE w.id = u.id);
END
$$;

-- What came of tasks, in order: open, done, failed, cancelled, discarded, not_known.
CREATE FUNCTION gristmill.endings(p_ids bigint[], p_now timestamptz DEFAULT NULL)
RETURNS TABLE (ending text, is_wanted boolean, encoding smallint, value bytea, error text)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now  timestamptz := coalesce(p_now, clock_timestamp());
    v_id   bigint;
    v_kept gristmill.ending;
BEGIN
    FOREACH v_id IN ARRAY p_ids LOOP
        is_wanted := EXISTS (SELECT 1 FROM gristmill.wanted w WHERE w.id = v_id);
        ending := NULL;
        encoding := NULL;
        value := NULL;
        error := NULL;
        SELECT * INTO v_kept FROM gristmill.ending e WHERE e.id = v_id AND e.until > v_now;
        IF FOUND THEN
            ending := v_kept.ending;
            encoding := v_kept.encoding;
            value := v_kept.value;
            error := v_kept.error;
            RETURN NEXT;
            CONTINUE;
        END IF;
        SELECT 'failed', coalesce(f.error, '') INTO ending, error
          FROM gristmill.failed f WHERE f.id = v_id;
        IF NOT FOUND THEN
            ending := CASE
                WHEN EXISTS (SELECT 1 FROM gristmill.done d WHERE d.id = v_id) THEN 'done'
                WHEN EXISTS (SELECT 1 FROM gristmill.task t WHERE t.id = v_id)
                  OR EXISTS (SELECT 1 FROM gristmill.lease l WHERE v_id = ANY (l.open)) THEN 'open'
                ELSE 'not_known' END;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- Forgets endings whose time is over, so many at most; tells how many. What is wanted
-- of a task that stands stays so; of one that went with its subject it goes.
CREATE FUNCTION gristmill.forget_endings(p_limit integer, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_gone bigint;
BEGIN
    DELETE FROM gristmill.ending e
     WHERE e.ctid = ANY (ARRAY(SELECT x.ctid FROM gristmill.ending x WHERE x.until <= p_now
                                ORDER BY x.until LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_gone = ROW_COUNT;
    WITH due AS MATERIALIZED (
        SELECT x.ctid AS place, x.id,
               EXISTS (SELECT 1 FROM gristmill.standing(x.id) s WHERE s.state <> 'done') AS stands
          FROM gristmill.wanted x
         WHERE x.ctid = ANY (ARRAY(SELECT y.ctid FROM gristmill.wanted y WHERE y.until <= p_now
                                    ORDER BY y.until LIMIT p_limit FOR UPDATE SKIP LOCKED))
    ), again AS (
        UPDATE gristmill.wanted w SET until = p_now + interval '1 hour'
         WHERE w.ctid = ANY (ARRAY(SELECT d.place FROM due d WHERE d.stands))
    )
    DELETE FROM gristmill.wanted w
     WHERE w.ctid = ANY (ARRAY(SELECT d.place FROM due d WHERE NOT d.stands));
    RETURN v_gone;
END
$$;

-- What came of a task, for who put it and for who reads: done with what its handler
-- returned (null where that is none, or no JSON; raw always has the bytes), failed with
-- its last error, cancelled, discarded, open, or not_known: there is none, or nothing
-- kept its end.
CREATE FUNCTION gristmill.result(id bigint)
RETURNS TABLE (state text, result jsonb, error text, raw bytea)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM gristmill.must_be('id', $1 IS NULL, 'a task''s number');
    RETURN QUERY SELECT e.ending, gristmill.as_json(e.value, e.encoding), e.error, e.value
      FROM gristmill.endings(ARRAY[$1]) e;
END
$$;
