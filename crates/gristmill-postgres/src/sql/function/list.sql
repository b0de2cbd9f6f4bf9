-- Which tasks stand on a page, by the narrowest way there is, and after a bounded look
-- where there is none. Only ids: what is passed by is not read. Each statement is planned
-- for what is asked, as most of it is not asked.

-- The id behind which so many more stand, in the asked direction, of what is in these
-- states: a look goes no further. Null where fewer stand. Under a lease stand as many as
-- workers hold, which are not counted.
CREATE FUNCTION gristmill.look_end(
    p_from bigint, p_newest boolean, p_rows bigint, p_states text[], p_queue integer,
    p_grp text, p_source text
) RETURNS bigint
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_ends bigint[] := '{}';
    v_end  bigint;
BEGIN
    IF 'pending' = ANY (p_states) THEN
        IF p_newest THEN
            SELECT t.id INTO v_end FROM gristmill.task t
             WHERE t.id < p_from AND (p_grp IS NULL OR t.grp = p_grp)
               AND (p_source IS NULL OR t.source = p_source)
             ORDER BY t.id DESC OFFSET p_rows - 1 LIMIT 1;
        ELSE
            SELECT t.id INTO v_end FROM gristmill.task t
             WHERE t.id > p_from AND (p_grp IS NULL OR t.grp = p_grp)
               AND (p_source IS NULL OR t.source = p_source)
             ORDER BY t.id OFFSET p_rows - 1 LIMIT 1;
        END IF;
        v_ends := v_ends || v_end;
    END IF;
    IF 'failed' = ANY (p_states) THEN
        IF p_newest THEN
            SELECT t.id INTO v_end FROM gristmill.failed t
             WHERE t.id < p_from AND (p_grp IS NULL OR t.grp = p_grp)
               AND (p_source IS NULL OR t.source = p_source)
               AND (p_queue IS NULL OR p_grp IS NOT NULL OR p_source IS NOT NULL
                    OR t.queue = p_queue)
             ORDER BY t.id DESC OFFSET p_rows - 1 LIMIT 1;
        ELSE
            SELECT t.id INTO v_end FROM gristmill.failed t
             WHERE t.id > p_from AND (p_grp IS NULL OR t.grp = p_grp)
               AND (p_source IS NULL OR t.source = p_source)
               AND (p_queue IS NULL OR p_grp IS NOT NULL OR p_source IS NOT NULL
                    OR t.queue = p_queue)
             ORDER BY t.id OFFSET p_rows - 1 LIMIT 1;
        END IF;
        v_ends := v_ends || v_end;
    END IF;
    IF 'done' = ANY (p_states) THEN
        IF p_newest THEN
            SELECT t.id INTO v_end FROM gristmill.done t
             WHERE t.id < p_from ORDER BY t.id DESC OFFSET p_rows - 1 LIMIT 1;
        ELSE
            SELECT t.id INTO v_end FROM gristmill.done t
             WHERE t.id > p_from ORDER BY t.id OFFSET p_rows - 1 LIMIT 1;
        END IF;
        v_ends := v_ends || v_end;
    END IF;
    -- The nearest one: behind it one of the tables was not looked at.
    IF p_newest THEN
        SELECT max(e) INTO v_end FROM unnest(v_ends) e;
    ELSE
        SELECT min(e) INTO v_end FROM unnest(v_ends) e;
    END IF;
    RETURN v_end;
END
$$;

-- The ids of one stretch that fit, in the asked direction; p_sign turns it.
CREATE FUNCTION gristmill.look_stretch(
    p_low bigint, p_high bigint, p_sign integer, p_limit integer, p_states text[],
    p_queue integer, p_grp text, p_source text, p_error text, p_claims_over integer,
    p_stood_at timestamptz, p_blocked boolean, p_by timestamptz, p_later timestamptz
) RETURNS bigint[]
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_ids   bigint[];
    -- What only the whole task in a lease says: else its number is enough.
    v_whole boolean := p_grp IS NOT NULL OR p_source IS NOT NULL OR p_error IS NOT NULL
                       OR p_claims_over IS NOT NULL;
BEGIN
    SELECT array_agg(x.id ORDER BY x.id * p_sign) INTO v_ids
      FROM (SELECT y.id
              FROM (SELECT t.id FROM gristmill.task t
                     WHERE 'pending' = ANY (p_states) AND t.id >= p_low AND t.id <= p_high
                       AND (p_queue IS NULL OR t.queue = p_queue)
                       AND (p_grp IS NULL OR t.grp = p_grp)
                       AND (p_source IS NULL OR t.source = p_source)
                       AND (p_blocked IS NULL OR t.blocked = p_blocked)
                       AND (p_by IS NULL OR t.run_at <= p_by)
                       AND (p_later IS NULL OR t.run_at > p_later)
                       AND (p_claims_over IS NULL OR t.claims > p_claims_over)
                       AND (p_stood_at IS NULL OR t.created_at <= p_stood_at)
                       AND (p_error IS NULL OR position(p_error IN t.error) > 0)
                    UNION ALL
                    SELECT t.id FROM gristmill.failed t
                     WHERE 'failed' = ANY (p_states) AND t.id >= p_low AND t.id <= p_high
                       AND (p_queue IS NULL OR t.queue = p_queue)
                       AND (p_grp IS NULL OR t.grp = p_grp)
                       AND (p_source IS NULL OR t.source = p_source)
                       AND (p_claims_over IS NULL OR t.claims > p_claims_over)
                       AND (p_stood_at IS NULL OR (t.created_at <= p_stood_at
                                AND coalesce(t.failed_at, t.created_at) <= p_stood_at))
                       AND (p_error IS NULL OR position(p_error IN t.error) > 0)
                    UNION ALL
                    SELECT t.id FROM gristmill.done t
                     WHERE 'done' = ANY (p_states) AND t.id >= p_low AND t.id <= p_high
                       AND (p_queue IS NULL OR t.queue = p_queue)
                       AND (p_grp IS NULL OR t.grp = p_grp)
                       AND (p_source IS NULL OR t.source = p_source)
                       AND (p_claims_over IS NULL OR t.claims > p_claims_over)
                       AND (p_error IS NULL OR position(p_error IN t.error) > 0)
                    UNION ALL
                    SELECT o.id FROM gristmill.lease l CROSS JOIN unnest(l.open) o (id)
                     WHERE 'processing' = ANY (p_states) AND NOT v_whole
                       AND (p_queue IS NULL OR l.queue = p_queue)
                       AND o.id >= p_low AND o.id <= p_high
                    UNION ALL
                    SELECT t.id FROM gristmill.lease l CROSS JOIN unnest(l.tasks) t
                     WHERE 'processing' = ANY (p_states) AND v_whole
                       AND (p_queue IS NULL OR l.queue = p_queue)
                       AND t.id = ANY (l.open) AND t.id >= p_low AND t.id <= p_high
                       AND (p_grp IS NULL OR t.grp = p_grp)
                       AND (p_source IS NULL OR t.source = p_source)
                       AND (p_claims_over IS NULL OR t.claims + 1 > p_claims_over)
                       AND (p_error IS NULL OR position(p_error IN t.error) > 0)) y
             ORDER BY y.id * p_sign
             LIMIT p_limit) x;
    RETURN coalesce(v_ids, '{}');
END
$$;

-- The ids of a key.
CREATE FUNCTION gristmill.look_key(
    p_low bigint, p_high bigint, p_sign integer, p_limit integer, p_states text[],
    p_queue integer, p_key text
) RETURNS bigint[]
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_ids bigint[];
BEGIN
    SELECT array_agg(x.id ORDER BY x.id * p_sign) INTO v_ids
      FROM (SELECT y.id
              FROM (SELECT t.id FROM gristmill.task t
                     WHERE 'pending' = ANY (p_states) AND t.key = p_key AND NOT t.in_flight
                       AND (p_queue IS NULL OR t.queue = p_queue)
                    UNION ALL
                    SELECT f.id FROM gristmill.flight f
                     WHERE f.key = p_key AND (p_queue IS NULL OR f.queue = p_queue)
                       AND CASE WHEN EXISTS (SELECT 1 FROM gristmill.task t WHERE t.id = f.id)
                                THEN 'pending' ELSE 'processing' END = ANY (p_states)
                    UNION ALL
                    SELECT t.id FROM gristmill.queue q
                     CROSS JOIN LATERAL (SELECT f.id FROM gristmill.failed f
                                          WHERE f.queue = q.number AND f.key = p_key) t
                     WHERE 'failed' = ANY (p_states) AND (p_queue IS NULL OR q.number = p_queue)
                    UNION ALL
                    SELECT t.id FROM gristmill.queue q
                     CROSS JOIN LATERAL (SELECT d.id FROM gristmill.done d
                                          WHERE d.queue = q.number AND d.key = p_key) t
                     WHERE 'done' = ANY (p_states) AND (p_queue IS NULL OR q.number = p_queue)) y
             WHERE y.id >= p_low AND y.id <= p_high
             ORDER BY y.id * p_sign
             LIMIT p_limit) x;
    RETURN coalesce(v_ids, '{}');
END
$$;

-- The ids of a queue, or of those that are blocked, due or not due, where the kept counts
-- say that they are so few that their part of the claim order can be read through. Null
-- where they are more.
-- OFFSET 0 keeps the page's ids out of each part: with old statistics the planner goes by
-- them through all that waits, and with new ones along other queues to this one.
CREATE FUNCTION gristmill.look_set(
    p_low bigint, p_high bigint, p_sign integer, p_limit integer, p_states text[],
    p_queue integer, p_blocked boolean, p_by timestamptz, p_later timestamptz, p_most bigint
) RETURNS bigint[]
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_ids   bigint[];
    v_read  bigint;
    v_first integer := coalesce(p_queue, -2147483648);
    v_last  integer := coalesce(p_queue, 2147483647);
    v_by    timestamptz := coalesce(p_by, 'infinity');
    v_later timestamptz := coalesce(p_later, '-infinity');
BEGIN
    SELECT coalesce(sum(CASE WHEN p_blocked OR NOT 'pending' = ANY (p_states) THEN 0
                             WHEN p_by IS NULL AND p_later IS NOT NULL THEN s.delayed
                             WHEN p_by IS NOT NULL AND p_later IS NULL THEN s.ready
                             ELSE s.ready + s.delayed END
                        + CASE WHEN NOT p_blocked THEN 0 ELSE s.blocked END
                        + CASE WHEN 'failed' = ANY (p_states) THEN s.failed_now ELSE 0 END
                        + CASE WHEN 'processing' = ANY (p_states) THEN s.processing ELSE 0 END), 0)
      INTO v_read
      FROM (SELECT t.ready, t.delayed, t.blocked, t.failed_now, t.processing
              FROM gristmill.total t WHERE t.queue >= v_first AND t.queue <= v_last
            UNION ALL
            SELECT coalesce(d.ready, 0), coalesce(d.delayed, 0), coalesce(d.blocked, 0),
                   coalesce(d.failed_now, 0), coalesce(d.processing, 0)
              FROM gristmill.delta d WHERE d.queue >= v_first AND d.queue <= v_last) s;
    IF v_read > p_most THEN
        RETURN NULL;
    END IF;
    WITH RECURSIVE level (queue, priority) AS (
        (SELECT t.queue, t.priority FROM gristmill.task t
          WHERE NOT t.blocked AND t.queue >= v_first AND t.queue <= v_last
            AND 'pending' = ANY (p_states) AND p_blocked IS DISTINCT FROM true
          ORDER BY t.queue, t.priority LIMIT 1)
        UNION ALL
        SELECT n.queue, n.priority
          FROM level l
         CROSS JOIN LATERAL (
               SELECT t.queue, t.priority FROM gristmill.task t
                WHERE NOT t.blocked AND (t.queue, t.priority) > (l.queue, l.priority)
                  AND t.queue <= v_last
                ORDER BY t.queue, t.priority LIMIT 1) n
    )
    SELECT array_agg(x.id ORDER BY x.id * p_sign) INTO v_ids
      FROM (SELECT y.id
              FROM (SELECT o.id FROM level l
                     CROSS JOIN LATERAL (
                           SELECT t.id
                             FROM (SELECT t.id FROM gristmill.task t
                                    WHERE NOT t.blocked AND t.queue = l.queue
                                      AND t.priority = l.priority AND t.run_at > v_later
                                      AND t.run_at <= v_by
                                    ORDER BY t.run_at, t.id
                                   OFFSET 0) t
                            WHERE p_sign > 0 AND t.id >= p_low AND t.id <= p_high
                            ORDER BY t.id LIMIT p_limit) o
                    UNION ALL
                    -- Ids mostly rise with times: read in their direction, the first rows
                    -- are the wanted ones, and none takes another's place.
                    SELECT o.id FROM level l
                     CROSS JOIN LATERAL (
                           SELECT t.id
                             FROM (SELECT t.id FROM gristmill.task t
                                    WHERE NOT t.blocked AND t.queue = l.queue
                                      AND t.priority = l.priority AND t.run_at > v_later
                                      AND t.run_at <= v_by
                                    ORDER BY t.run_at DESC, t.id DESC
                                   OFFSET 0) t
                            WHERE p_sign < 0 AND t.id >= p_low AND t.id <= p_high
                            ORDER BY t.id DESC LIMIT p_limit) o
                    UNION ALL
                    SELECT b.id
                      FROM (SELECT t.id FROM gristmill.task t
                             WHERE t.blocked AND 'pending' = ANY (p_states)
                               AND p_blocked IS DISTINCT FROM false
                               AND t.key IS NOT NULL AND (p_queue IS NULL OR t.queue = p_queue)
                            OFFSET 0) b
                    UNION ALL
                    SELECT t.id FROM gristmill.failed t
                     WHERE 'failed' = ANY (p_states) AND t.queue = p_queue
                    UNION ALL
                    SELECT o.id FROM gristmill.lease l CROSS JOIN unnest(l.open) o (id)
                     WHERE 'processing' = ANY (p_states) AND l.queue = p_queue) y
             WHERE y.id >= p_low AND y.id <= p_high
             ORDER BY y.id * p_sign
             LIMIT p_limit) x;
    RETURN coalesce(v_ids, '{}');
END
$$;

-- A page: its ids, where to go on (null: that was all), and how many were looked at.
-- The ids fit as far as an index or a narrow column says; whoever reads them looks again.
CREATE FUNCTION gristmill.look(
    p_from bigint, p_newest boolean, p_limit integer, p_looks integer, p_states text[],
    p_queue integer, p_key text, p_grp text, p_source text, p_error text,
    p_claims_over integer, p_stood_at timestamptz, p_blocked boolean, p_by timestamptz,
    p_later timestamptz, p_most bigint,
    OUT ids bigint[], OUT next bigint, OUT looked bigint
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_sign    integer := CASE WHEN p_newest THEN -1 ELSE 1 END;
    v_from    bigint := p_from;
    v_end     bigint;
    v_left    bigint := greatest(p_looks, 1);
    v_rows    bigint;
    v_more    bigint[];
    v_missing integer;
    -- Whether an index might be read through, and after how many are looked at.
    v_narrow  boolean := (p_queue IS NOT NULL OR p_blocked IS NOT NULL) AND p_grp IS NULL
                         AND p_source IS NULL AND p_error IS NULL AND p_claims_over IS NULL
                         AND 'pending' = ANY (p_states);
    v_first   bigint := greatest(least(16 * p_limit::bigint, p_looks / 2), 1);
BEGIN
    ids := '{}';
    looked := 0;
    IF p_key IS NOT NULL THEN
        ids := gristmill.look_key(
            CASE WHEN p_newest THEN -9223372036854775807 ELSE p_from + 1 END,
            CASE WHEN p_newest THEN p_from - 1 ELSE 9223372036854775807 END,
            v_sign, p_limit, p_states, p_queue, p_key);
        looked := cardinality(ids);
        next := CASE WHEN looked = p_limit THEN ids[p_limit] END;
        RETURN;
    END IF;
    -- In steps that grow: where most tasks fit, the first is the last.
    v_rows := least(4 * p_limit::bigint, v_first);
    LOOP
        v_missing := p_limit - cardinality(ids);
        v_end := gristmill.look_end(v_from, p_newest, v_rows, p_states, p_queue, p_grp, p_source);
        v_more := gristmill.look_stretch(
            CASE WHEN p_newest THEN coalesce(v_end, -9223372036854775807) ELSE v_from + 1 END,
            CASE WHEN p_newest THEN v_from - 1 ELSE coalesce(v_end, 9223372036854775807) END,
            v_sign, v_missing, p_states, p_queue, p_grp, p_source, p_error, p_claims_over,
            p_stood_at, p_blocked, p_by, p_later);
        ids := ids || v_more;
        v_left := v_left - v_rows;
        IF cardinality(v_more) = v_missing THEN
            looked := looked + v_missing;
            next := ids[p_limit];
            RETURN;
        END IF;
        looked := looked + CASE WHEN v_end IS NULL THEN cardinality(v_more)
                                ELSE greatest(v_rows, cardinality(v_more)) END;
        next := v_end;
        IF v_end IS NULL OR v_left <= 0 THEN
            RETURN;
        END IF;
        v_from := v_end;
        IF v_narrow AND p_looks - v_left >= v_first THEN
            v_narrow := false;
            v_missing := p_limit - cardinality(ids);
            v_more := gristmill.look_set(
                CASE WHEN p_newest THEN -9223372036854775807 ELSE v_from + 1 END,
                CASE WHEN p_newest THEN v_from - 1 ELSE 9223372036854775807 END,
                v_sign, v_missing, p_states, p_queue, p_blocked, p_by, p_later, p_most);
            IF v_more IS NOT NULL THEN
                ids := ids || v_more;
                looked := looked + cardinality(v_more);
                next := CASE WHEN cardinality(v_more) = v_missing THEN ids[p_limit] END;
                RETURN;
            END IF;
        END IF;
        v_rows := least(v_rows * 4, CASE WHEN v_narrow THEN v_first - (p_looks - v_left)
                                         ELSE v_left END);
    END LOOP;
END
$$;
