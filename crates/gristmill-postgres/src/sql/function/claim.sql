-- Claiming: the front of the queue under a new lease.
--
-- Why this is not thirty lines. A queue on PostgreSQL can be one statement,
--
--     UPDATE task SET token = …, until = … WHERE id IN (SELECT id FROM task
--      WHERE queue = … AND state = 'pending' AND run_at <= now()
--      ORDER BY priority, run_at, id LIMIT 10 FOR UPDATE SKIP LOCKED) RETURNING *
--
-- and each part of this file stands for something that goes wrong with it:
--
--   one row a claim   That UPDATE leaves a dead row and dead index entries a task,
--                     and its settlement once more. Here the tasks leave `task` and
--                     stand in one row of `lease` (the last statement of claim_tasks).
--   next_level        One index cannot give what is due in the order of priorities:
--                     ten thousand urgent tasks that are delayed would be walked over
--                     by every claim. So the levels are asked one by one, and of each
--                     the due ones stand together.
--   p_levels, …       What was claimed is dead and stays in front of the index until a
--                     vacuum, for hours if somebody's transaction is open. A process
--                     begins where its last claim ended, or the rate falls with
--                     every task done. p_sweep finds what came back in front of that.
--   expire, p_clean   A worker that died is noticed by who wants work, with no process
--                     in charge of it. Looking for ended leases walks over dead entries
--                     too, so what was seen clean is not looked at again.
--   p_held            After the clock jumped, leases that seem to have ended have not.
--   flight, set_aside Two tasks of a key never run side by side, also when one was put
--                     while the other was being claimed: a unique index decides, and
--                     who loses is set aside instead of waiting.
--   markers           A put in a transaction that committed by now is answered by the
--                     run that begins here; else its change would have none.
--   suspects          A task whose lease ran out may have killed its worker. It is taken
--                     alone, or it would take its neighbours' attempts along each time.
--   p_bytes           A thousand payloads of a megabyte are not one answer.
--   slots             So many of a group at a time, whoever claims: one claimer of such
--                     a queue at a time, the first free slot, other groups not hidden.
--   concurrency       The same without numbers, in batches, of the queue or of each group.
--   rate              So many in a time: what is taken moves a bucket's instant on.
--   fair              Groups take turns: round the index of a priority's groups.
--   counts            Every move appends to `delta`, so that nobody ever counts rows.
--   asynchronous      A lost claim is only a redelivery, so it need not wait for the
--                     disk; unless it took leases away, whose tokens would be good again.
--
-- What holds all of it together: places (ctid) go from function to function, locked;
-- plans are those of force_generic_plan with scans and sorts off (tests/it/plans.rs).

-- Picks tasks of one priority, from the front or from behind a hint: locks
-- them and takes their keys into flight. The cost is that of the tasks picked:
-- due tasks of one level stand in the index as they are claimed.
--   p_front  up to the hint instead of behind it: what came back there
--   p_first  nothing was picked before: a task with an expired lease behind it
--            is taken alone, so elsewhere it ends the picking
-- No task may be picked twice in a claim: a lock does not keep its holder out.
-- Places and not tasks go from function to function: an array of whole rows
-- is copied and taken apart at every step, which cost more than all else.
CREATE FUNCTION gristmill.pick(
    p_queue integer, p_level smallint, p_max integer, p_source text,
    p_hint timestamptz, p_hint_id bigint, p_front boolean, p_bytes bigint, p_first boolean,
    p_now timestamptz,
    OUT places tid[], OUT bytes bigint, OUT full_up boolean, OUT any_delayed boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    -- So many are worth a subtransaction.
    c_many constant integer := 16;
    v_suspect  boolean;
    v_keyed    tid[];
    v_flown    bigint[];
    v_cut      integer;
    -- From where to where: everything, behind the hint, or up to it.
    v_after    timestamptz := CASE WHEN p_front THEN '-infinity'
                                   ELSE coalesce(p_hint, '-infinity') END;
    v_after_id bigint      := CASE WHEN p_front OR p_hint IS NULL THEN 0 ELSE p_hint_id END;
    v_until    timestamptz := CASE WHEN p_front THEN p_hint ELSE 'infinity' END;
    v_until_id bigint      := CASE WHEN p_front THEN p_hint_id ELSE 9223372036854775807 END;
BEGIN
    full_up := false;
    LOOP
        IF p_source IS NULL THEN
            SELECT array_agg(p.ctid), bool_or(p.expiries > 0), sum(octet_length(p.payload)),
                   array_agg(p.ctid) FILTER (WHERE p.key IS NOT NULL AND NOT p.in_flight),
                   bool_or(p.delayed)
              INTO places, v_suspect, bytes, v_keyed, any_delayed
              FROM (SELECT t.ctid, t.expiries, t.payload, t.key, t.in_flight, t.delayed
                      FROM gristmill.task t
                     WHERE t.queue = p_queue AND NOT t.blocked
                       AND t.priority = p_level AND t.run_at <= p_now
                       AND (t.run_at, t.id) > (v_after, v_after_id)
                       AND (t.run_at, t.id) <= (v_until, v_until_id)
                     ORDER BY t.run_at, t.id LIMIT p_max FOR UPDATE SKIP LOCKED) p;
        ELSE
            -- The same of one source, which has an index of its own: a plan that could
            -- be either would be neither.
            SELECT array_agg(p.ctid), bool_or(p.expiries > 0), sum(octet_length(p.payload)),
                   array_agg(p.ctid) FILTER (WHERE p.key IS NOT NULL AND NOT p.in_flight),
                   bool_or(p.delayed)
              INTO places, v_suspect, bytes, v_keyed, any_delayed
              FROM (SELECT t.ctid, t.expiries, t.payload, t.key, t.in_flight, t.delayed
                      FROM gristmill.task t
                     WHERE t.queue = p_queue AND t.source = p_source AND NOT t.blocked
                       AND t.priority = p_level AND t.run_at <= p_now
                       AND (t.run_at, t.id) > (v_after, v_after_id)
                       AND (t.run_at, t.id) <= (v_until, v_until_id)
                     ORDER BY t.run_at, t.id LIMIT p_max FOR UPDATE SKIP LOCKED) p;
        END IF;
        IF places IS NULL THEN
            bytes := 0;
            RETURN;
        END IF;
        IF v_suspect OR bytes > p_bytes THEN
            -- Where to stop: before a suspect, unless it is the first of all;
            -- and before the bytes are too many, but after one task.
            SELECT min(c.position) INTO v_cut
              FROM (SELECT w.position,
                           (w.suspect OR w.so_far > p_bytes) AND NOT (p_first AND w.position = 1)
                               AS stop
                      FROM (SELECT row_number() OVER o AS position, t.expiries > 0 AS suspect,
                                   sum(octet_length(t.payload)) OVER o AS so_far
                              FROM gristmill.task t
                             WHERE t.ctid = ANY (places)
                            WINDOW o AS (ORDER BY t.run_at, t.id)) w) c
             WHERE c.stop;
            IF p_first AND (SELECT t.expiries > 0 FROM gristmill.task t
                             WHERE t.ctid = places[1]) THEN
                v_cut := 2;
                full_up := true;
            END IF;
            IF v_cut IS NOT NULL THEN
                places := places[1:v_cut - 1];
                full_up := true;
                v_keyed := ARRAY(SELECT t.ctid FROM gristmill.task t
                                  WHERE t.ctid = ANY (places)
                                    AND t.key IS NOT NULL AND NOT t.in_flight);
            END IF;
            IF places = '{}' THEN
                bytes := 0;
                RETURN;
            END IF;
        END IF;
        -- Keys go into flight. One that is there already belongs to a task that
        -- was put while its forerunner was being claimed: it stands in the
        -- claim order by mistake and is set aside. Asked for first, because an
        -- insert would wait for whoever is about to free the key.
        IF cardinality(v_keyed) > 0 THEN
            v_flown := NULL;
            IF cardinality(v_keyed) >= c_many THEN
                -- ON CONFLICT doubles what each costs. Somebody who takes one of them at
                -- this very moment makes this fail, and it is done with more care.
                BEGIN
                    WITH flown AS (
                        INSERT INTO gristmill.flight (queue, key, id)
                        SELECT t.queue, t.key, t.id FROM gristmill.task t
                         WHERE t.ctid = ANY (v_keyed)
                           AND (SELECT f.id FROM gristmill.flight f
                                 WHERE f.queue = t.queue AND f.key = t.key) IS NULL
                        RETURNING id
                    )
                    SELECT coalesce(array_agg(f.id), '{}') INTO v_flown FROM flown f;
                EXCEPTION WHEN unique_violation THEN
                    v_flown := NULL;
                END;
            END IF;
            IF v_flown IS NULL THEN
                WITH flown AS (
                    INSERT INTO gristmill.flight (queue, key, id)
                    SELECT t.queue, t.key, t.id FROM gristmill.task t
                     WHERE t.ctid = ANY (v_keyed)
                       AND (SELECT f.id FROM gristmill.flight f
                             WHERE f.queue = t.queue AND f.key = t.key) IS NULL
                    ON CONFLICT DO NOTHING
                    RETURNING id
                )
                SELECT array_agg(f.id) INTO v_flown FROM flown f;
            END IF;
            IF cardinality(v_keyed) > coalesce(cardinality(v_flown), 0) THEN
                v_keyed := gristmill.set_aside(v_keyed, coalesce(v_flown, '{}'), p_now);
                places := ARRAY(SELECT p FROM unnest(places) p WHERE p <> ALL (v_keyed));
            END IF;
        END IF;
        -- All of them were set aside: the next ones are not.
        EXIT WHEN places <> '{}' OR full_up;
    END LOOP;
END
$$;

-- Blocks those of the picked tasks whose key did not get into flight; returns
-- the places they had.
CREATE FUNCTION gristmill.set_aside(p_places tid[], p_flown bigint[], p_now timestamptz)
RETURNS tid[]
LANGUAGE plpgsql AS $$
DECLARE
    v_place tid;
    v_task  gristmill.task;
    v_aside tid[];
BEGIN
    FOREACH v_place IN ARRAY p_places LOOP
        SELECT t.* INTO v_task FROM gristmill.task t
         WHERE t.ctid = v_place AND t.id <> ALL (p_flown);
        CONTINUE WHEN NOT FOUND;
        PERFORM gristmill.count_out(v_task, p_now);
        UPDATE gristmill.task t SET blocked = true, delayed = false WHERE t.id = v_task.id;
        INSERT INTO gristmill.delta (at, queue, blocked) VALUES (p_now, v_task.queue, 1);
        v_aside := v_aside || v_place;
    END LOOP;
    RETURN v_aside;
END
$$;

-- The next less urgent priority that has tasks, or null. p_known is one that
-- need not be looked for: it is answered in its turn, with tasks or without.
CREATE FUNCTION gristmill.next_level(
    p_queue integer, p_source text, p_after smallint, p_known smallint DEFAULT NULL
) RETURNS smallint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_below smallint := CASE WHEN p_after >= p_known THEN NULL ELSE p_known END;
BEGIN
    IF p_source IS NOT NULL THEN
        RETURN (SELECT t.priority FROM gristmill.task t
                 WHERE t.queue = p_queue AND t.source = p_source AND NOT t.blocked
                   AND t.priority > coalesce(p_after::integer, -32769)
                 ORDER BY t.priority LIMIT 1);
    END IF;
    RETURN coalesce(
        (SELECT t.priority FROM gristmill.task t
          WHERE t.queue = p_queue AND NOT t.blocked
            AND t.priority > coalesce(p_after::integer, -32769)
            AND t.priority < coalesce(v_below::integer, 32768)
          ORDER BY t.priority LIMIT 1),
        v_below);
END
$$;

-- When the next unblocked task falls due.
CREATE FUNCTION gristmill.next_due(p_queue integer, p_source text, p_now timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_level smallint;
    v_at    timestamptz;
    v_next  timestamptz;
BEGIN
    LOOP
        v_level := gristmill.next_level(p_queue, p_source, v_level);
        EXIT WHEN v_level IS NULL;
        IF p_source IS NULL THEN
            SELECT t.run_at INTO v_at FROM gristmill.task t
             WHERE t.queue = p_queue AND NOT t.blocked AND t.priority = v_level
               AND t.run_at > p_now
             ORDER BY t.run_at, t.id LIMIT 1;
        ELSE
            SELECT t.run_at INTO v_at FROM gristmill.task t
             WHERE t.queue = p_queue AND t.source = p_source AND NOT t.blocked
               AND t.priority = v_level AND t.run_at > p_now
             ORDER BY t.run_at, t.id LIMIT 1;
        END IF;
        v_next := least(v_next, v_at);
    END LOOP;
    RETURN v_next;
END
$$;

-- The smallest slot no lease of the group holds, or null. A lease that ran out
-- but was not taken back still holds its own, and its share of the limit.
CREATE FUNCTION gristmill.free_slot(p_queue integer, p_group text, p_slots integer)
RETURNS integer
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (SELECT count(*) FROM gristmill.lease l
         WHERE l.queue = p_queue AND l.grp = p_group AND l.slot IS NOT NULL) >= p_slots THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT s FROM generate_series(0, p_slots - 1) s
             WHERE NOT EXISTS (SELECT 1 FROM gristmill.lease l
                                WHERE l.queue = p_queue AND l.grp = p_group AND l.slot = s)
             ORDER BY s LIMIT 1);
END
$$;

-- The first due task of a group that has a free slot, but none of those in
-- p_not: somebody's open transaction holds them. Looks at the front first, which
-- is enough while few groups are full; then from group to group, so that a
-- million tasks of full groups cost one look a group.
CREATE FUNCTION gristmill.first_with_slot(
    p_queue integer, p_source text, p_slots integer, p_not bigint[], p_now timestamptz,
    OUT id bigint, OUT slot integer
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    c_front constant integer := 64;
    v_left  integer := c_front + cardinality(p_not);
    v_level smallint;
    v_group text;
    v_entry record;
    v_best  record;
    v_slot  integer;
BEGIN
    LOOP
        v_level := gristmill.next_level(p_queue, p_source, v_level);
        EXIT WHEN v_level IS NULL OR v_left <= 0;
        -- A source has an index of its own, so it is asked for in a statement of
        -- its own: one statement for both would pass the other sources by.
        FOR v_entry IN
            SELECT t.id, coalesce(t.grp, '') AS grp FROM gristmill.task t
             WHERE p_source IS NULL AND t.queue = p_queue AND NOT t.blocked
               AND t.priority = v_level AND t.run_at <= p_now
             ORDER BY t.run_at, t.id LIMIT v_left
        LOOP
            v_left := v_left - 1;
            CONTINUE WHEN v_entry.id = ANY (p_not);
            slot := gristmill.free_slot(p_queue, v_entry.grp, p_slots);
            IF slot IS NOT NULL THEN
                id := v_entry.id;
                RETURN;
            END IF;
        END LOOP;
        IF p_source IS NOT NULL THEN
            FOR v_entry IN
                SELECT t.id, coalesce(t.grp, '') AS grp FROM gristmill.task t
                 WHERE t.queue = p_queue AND t.source = p_source AND NOT t.blocked
                   AND t.priority = v_level AND t.run_at <= p_now
                 ORDER BY t.run_at, t.id LIMIT v_left
            LOOP
                v_left := v_left - 1;
                CONTINUE WHEN v_entry.id = ANY (p_not);
                slot := gristmill.free_slot(p_queue, v_entry.grp, p_slots);
                IF slot IS NOT NULL THEN
                    id := v_entry.id;
                    RETURN;
                END IF;
            END LOOP;
        END IF;
    END LOOP;
    IF v_left > 0 THEN
        RETURN;
    END IF;
    v_best := ROW(NULL::smallint, NULL::timestamptz, NULL::bigint);
    FOR v_group IN SELECT g.grp FROM gristmill.named_groups(p_queue, p_source) AS g (grp) LOOP
        v_slot := gristmill.free_slot(p_queue, v_group, p_slots);
        CONTINUE WHEN v_slot IS NULL;
        v_entry := gristmill.first_of_group(p_queue, p_source, v_group, p_not, p_now);
        IF v_entry.id IS NOT NULL
           AND (id IS NULL OR (v_entry.priority, v_entry.run_at, v_entry.id)
                              < (v_best.f1, v_best.f2, v_best.f3)) THEN
            v_best := ROW(v_entry.priority, v_entry.run_at, v_entry.id);
            id := v_entry.id;
            slot := v_slot;
        END IF;
    END LOOP;
END
$$;

-- The groups that have tasks, of one source or of all, in the order of their names: one
-- look at the index a group, however many tasks each has.
CREATE FUNCTION gristmill.named_groups(p_queue integer, p_source text) RETURNS SETOF text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    -- The first one is asked for apart from those after another: a condition that is there
    -- or not is no place to begin at, and each look would begin at the front.
    IF p_source IS NULL THEN
        RETURN QUERY
        WITH RECURSIVE named AS (
            SELECT (SELECT coalesce(t.grp, '') FROM gristmill.task t
                     WHERE t.queue = p_queue AND t.slotted AND NOT t.blocked
                     ORDER BY coalesce(t.grp, '') LIMIT 1) AS grp
            UNION ALL
            SELECT (SELECT coalesce(t.grp, '') FROM gristmill.task t
                     WHERE t.queue = p_queue AND t.slotted AND NOT t.blocked
                       AND coalesce(t.grp, '') > n.grp
                     ORDER BY coalesce(t.grp, '') LIMIT 1)
              FROM named n WHERE n.grp IS NOT NULL
        )
        SELECT n.grp::text FROM named n WHERE n.grp IS NOT NULL;
    ELSE
        RETURN QUERY
        WITH RECURSIVE named AS (
            SELECT (SELECT coalesce(t.grp, '') FROM gristmill.task t
                     WHERE t.queue = p_queue AND t.source = p_source
                       AND t.slotted AND NOT t.blocked
                     ORDER BY coalesce(t.grp, '') LIMIT 1) AS grp
            UNION ALL
            SELECT (SELECT coalesce(t.grp, '') FROM gristmill.task t
                     WHERE t.queue = p_queue AND t.source = p_source
                       AND t.slotted AND NOT t.blocked AND coalesce(t.grp, '') > n.grp
                     ORDER BY coalesce(t.grp, '') LIMIT 1)
              FROM named n WHERE n.grp IS NOT NULL
        )
        SELECT n.grp::text FROM named n WHERE n.grp IS NOT NULL;
    END IF;
END
$$;

-- The latest instant at which a group's bucket may be full while it has a token; null
-- where groups have none of their own.
CREATE FUNCTION gristmill.open_until(p_queue gristmill.queue, p_now timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF p_queue.rate_tasks IS NULL OR NOT p_queue.rate_per_group THEN
        RETURN NULL;
    END IF;
    RETURN gristmill.later(p_now, gristmill.span(
        div((p_queue.burst - 1)::numeric * p_queue.rate_time, p_queue.rate_tasks)::bigint));
END
$$;

-- The latest instant at which a bucket can be full. One that is stamped later was stamped
-- by a wrong clock.
CREATE FUNCTION gristmill.full_by(p_queue gristmill.queue, p_now timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN gristmill.later(p_now, gristmill.span(
        gristmill.token_time(p_queue.rate_tasks, p_queue.rate_time, p_queue.burst)));
END
$$;

-- The first due task of one group that is none of p_not.
CREATE FUNCTION gristmill.first_of_group(
    p_queue integer, p_source text, p_group text, p_not bigint[], p_now timestamptz,
    OUT priority smallint, OUT run_at timestamptz, OUT id bigint
)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    v_level smallint;
BEGIN
    LOOP
        IF p_source IS NULL THEN
            SELECT t.priority INTO v_level FROM gristmill.task t
             WHERE t.queue = p_queue AND t.slotted AND NOT t.blocked
               AND coalesce(t.grp, '') = p_group AND t.priority > coalesce(v_level::integer, -32769)
             ORDER BY t.priority LIMIT 1;
            EXIT WHEN NOT FOUND;
            SELECT t.priority, t.run_at, t.id INTO priority, run_at, id FROM gristmill.task t
             WHERE t.queue = p_queue AND t.slotted AND NOT t.blocked
               AND coalesce(t.grp, '') = p_group AND t.priority = v_level AND t.run_at <= p_now
               AND t.id <> ALL (p_not)
             ORDER BY t.run_at, t.id LIMIT 1;
        ELSE
            SELECT t.priority INTO v_level FROM gristmill.task t
             WHERE t.queue = p_queue AND t.source = p_source AND t.slotted AND NOT t.blocked
               AND coalesce(t.grp, '') = p_group AND t.priority > coalesce(v_level::integer, -32769)
             ORDER BY t.priority LIMIT 1;
            EXIT WHEN NOT FOUND;
            SELECT t.priority, t.run_at, t.id INTO priority, run_at, id FROM gristmill.task t
             WHERE t.queue = p_queue AND t.source = p_source AND t.slotted AND NOT t.blocked
               AND coalesce(t.grp, '') = p_group AND t.priority = v_level AND t.run_at <= p_now
               AND t.id <> ALL (p_not)
             ORDER BY t.run_at, t.id LIMIT 1;
        END IF;
        EXIT WHEN FOUND;
    END LOOP;
END
$$;

-- Picks one task by its id, if it still stands, and takes its key into flight.
CREATE FUNCTION gristmill.pick_one(p_id bigint, p_now timestamptz) RETURNS tid[]
LANGUAGE plpgsql AS $$
DECLARE
    v_task  gristmill.task;
    v_place tid;
BEGIN
    SELECT t.ctid INTO v_place FROM gristmill.task t WHERE t.id = p_id AND NOT t.blocked
       FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT t.* INTO v_task FROM gristmill.task t WHERE t.ctid = v_place;
    IF v_task.key IS NOT NULL AND NOT v_task.in_flight THEN
        INSERT INTO gristmill.flight (queue, key, id)
        SELECT v_task.queue, v_task.key, v_task.id
         WHERE NOT EXISTS (SELECT 1 FROM gristmill.flight f
                            WHERE f.queue = v_task.queue AND f.key = v_task.key)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            PERFORM gristmill.set_aside(ARRAY[v_place], '{}', p_now);
            RETURN NULL;
        END IF;
    END IF;
    RETURN ARRAY[v_place];
END
$$;

-- Waits a little for whoever claims from this queue at the moment. False: an open
-- transaction has claimed, and nobody else can until it ends, for nobody knows
-- yet which slots are free.
CREATE FUNCTION gristmill.turn_to_claim(p_queue integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_set text := current_setting('lock_timeout');
BEGIN
    IF pg_try_advisory_xact_lock('gristmill.queue'::regclass::oid::integer, p_queue) THEN
        RETURN true;
    END IF;
    BEGIN
        PERFORM set_config('lock_timeout', '1000', true);
        PERFORM pg_advisory_xact_lock('gristmill.queue'::regclass::oid::integer, p_queue);
    EXCEPTION WHEN lock_not_available THEN
        RETURN false;
    END;
    PERFORM set_config('lock_timeout', v_set, true);
    RETURN true;
END
$$;

-- A turn to claim from a queue whose claims are limited, as turn_to_claim. Whoever has
-- it updates the same row, so that one with a snapshot from before another claim fails
-- instead of counting what it cannot see.
CREATE FUNCTION gristmill.limited_turn(p_queue integer) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT gristmill.turn_to_claim(p_queue) THEN
        RETURN false;
    END IF;
    UPDATE gristmill.bucket b SET turns = b.turns + 1 WHERE b.queue = p_queue AND b.grp = '';
    IF NOT FOUND THEN
        INSERT INTO gristmill.bucket AS b (queue, grp) VALUES (p_queue, '')
        ON CONFLICT (queue, grp) DO UPDATE SET turns = b.turns + 1;
    END IF;
    RETURN true;
END
$$;

-- How many tasks of a queue are under lease, also where the lease has run out.
CREATE FUNCTION gristmill.leased(p_queue integer) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT coalesce(sum(cardinality(l.open)), 0) FROM gristmill.lease l
             WHERE l.queue = p_queue);
END
$$;

-- The same of each group that has any, as an object. Costs what is under lease. A lease
-- from before groups were counted is taken apart.
CREATE FUNCTION gristmill.leased_by_group(p_queue integer) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT coalesce(jsonb_object_agg(x.grp, x.n), '{}')
              FROM (SELECT u.grp, count(*) AS n
                      FROM gristmill.lease l
                     CROSS JOIN LATERAL unnest(l.ids, CASE WHEN l.groups IS NULL
                               THEN ARRAY(SELECT coalesce(t.grp, '') FROM unnest(l.tasks) t)
                               ELSE l.groups END) AS u (id, grp)
                     WHERE l.queue = p_queue
                       AND (cardinality(l.open) = cardinality(l.ids) OR u.id = ANY (l.open))
                     GROUP BY u.grp) x);
END
$$;

-- Puts what was given back into the buckets of a queue with a rate. The caller has the
-- turn. A bucket that a wrong clock stamped is brought back when it is looked at.
CREATE FUNCTION gristmill.return_tokens(p_queue gristmill.queue, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_one record;
BEGIN
    FOR v_one IN
        WITH gone AS (DELETE FROM gristmill.refund r WHERE r.queue = p_queue.number RETURNING r.grp)
        SELECT g.grp, count(*) AS n FROM gone g GROUP BY g.grp
    LOOP
        UPDATE gristmill.bucket b
           SET full_at = b.full_at
                   - gristmill.span(div(p_queue.rate_time, p_queue.rate_tasks)::bigint) * v_one.n
         WHERE b.queue = p_queue.number AND b.grp = v_one.grp;
    END LOOP;
END
$$;

-- How many tokens a bucket has.
CREATE FUNCTION gristmill.tokens_of(p_queue gristmill.queue, p_group text, p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_full_at timestamptz := (SELECT b.full_at FROM gristmill.bucket b
                               WHERE b.queue = p_queue.number AND b.grp = p_group);
    v_latest  timestamptz := gristmill.full_by(p_queue, p_now);
BEGIN
    IF v_full_at > v_latest THEN
        -- A clock that was ahead said so: it means empty, and no more.
        UPDATE gristmill.bucket b SET full_at = v_latest
         WHERE b.queue = p_queue.number AND b.grp = p_group;
    END IF;
    RETURN gristmill.tokens(p_queue.rate_tasks, p_queue.rate_time, p_queue.burst, v_full_at,
                            p_now);
END
$$;

-- How many tasks of a queue may be claimed, as far as the queue as a whole is limited.
-- The caller has the turn; each count is a statement of its own, which sees what the turn
-- before committed.
CREATE FUNCTION gristmill.room_of_queue(p_queue gristmill.queue, p_now timestamptz)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_room bigint := 2147483647;
BEGIN
    IF p_queue.concurrency IS NOT NULL AND NOT p_queue.concurrency_per_group THEN
        v_room := greatest(0, p_queue.concurrency - gristmill.leased(p_queue.number));
    END IF;
    IF p_queue.rate_tasks IS NOT NULL THEN
        PERFORM gristmill.return_tokens(p_queue, p_now);
        IF NOT p_queue.rate_per_group THEN
            v_room := least(v_room, gristmill.tokens_of(p_queue, '', p_now));
        END IF;
    END IF;
    RETURN v_room;
END
$$;

-- The same of one of its groups, before the claim.
CREATE FUNCTION gristmill.room_of_group(
    p_queue gristmill.queue, p_leased jsonb, p_group text, p_now timestamptz
) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_room integer := 2147483647;
BEGIN
    IF p_queue.concurrency IS NOT NULL AND p_queue.concurrency_per_group THEN
        v_room := greatest(0, p_queue.concurrency - coalesce((p_leased ->> p_group)::integer, 0));
    END IF;
    IF p_queue.rate_tasks IS NOT NULL AND p_queue.rate_per_group THEN
        v_room := least(v_room, gristmill.tokens_of(p_queue, p_group, p_now));
    END IF;
    RETURN v_room;
END
$$;

-- A token for each of these tasks. Buckets that are full again are forgotten, more than
-- are written.
CREATE FUNCTION gristmill.take_tokens(p_queue gristmill.queue, p_places tid[], p_now timestamptz)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_one record;
BEGIN
    FOR v_one IN
        SELECT g.grp, count(*) AS n
          FROM (SELECT CASE WHEN p_queue.rate_per_group THEN coalesce(t.grp, '') ELSE '' END AS grp
                  FROM gristmill.task t WHERE t.ctid = ANY (p_places)) g
         GROUP BY g.grp
    LOOP
        INSERT INTO gristmill.bucket AS b (queue, grp, full_at)
        VALUES (p_queue.number, v_one.grp, gristmill.later(p_now, gristmill.span(
            gristmill.token_time(p_queue.rate_tasks, p_queue.rate_time, v_one.n))))
        ON CONFLICT (queue, grp) DO UPDATE SET full_at = gristmill.later(p_now, gristmill.span(
            gristmill.missing(p_queue.rate_tasks, p_queue.rate_time, p_queue.burst, b.full_at,
                              p_now)
            + gristmill.token_time(p_queue.rate_tasks, p_queue.rate_time, v_one.n)));
    END LOOP;
    DELETE FROM gristmill.bucket b
     WHERE b.ctid = ANY (ARRAY(SELECT x.ctid FROM gristmill.bucket x
                                WHERE x.queue = p_queue.number AND x.full_at <= p_now
                                  AND x.grp <> ''
                                ORDER BY x.full_at LIMIT 100 + cardinality(p_places)));
END
$$;

-- When a task that is due finds a token, where it is only that which keeps it.
CREATE FUNCTION gristmill.refill(p_queue gristmill.queue, p_source text, p_now timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
    v_one   record;
    v_due   boolean := false;
    v_level smallint;
BEGIN
    IF p_queue.rate_tasks IS NULL THEN
        RETURN NULL;
    END IF;
    FOR v_one IN
        SELECT b.grp, b.full_at FROM gristmill.bucket b
         WHERE b.queue = p_queue.number AND b.full_at > p_now
           AND (p_queue.rate_per_group OR b.grp = '')
         ORDER BY b.full_at
    LOOP
        CONTINUE WHEN gristmill.tokens(p_queue.rate_tasks, p_queue.rate_time, p_queue.burst,
                                       v_one.full_at, p_now) > 0;
        IF p_queue.rate_per_group THEN
            v_due := EXISTS (SELECT 1 FROM gristmill.of_group(p_queue.number, p_source,
                                 v_one.grp, 1, '{}', p_now));
        ELSE
            LOOP
                v_level := gristmill.next_level(p_queue.number, p_source, v_level);
                EXIT WHEN v_level IS NULL OR v_due;
                IF p_source IS NULL THEN
                    v_due := EXISTS (SELECT 1 FROM gristmill.task t
                         WHERE t.queue = p_queue.number AND NOT t.blocked
                           AND t.priority = v_level AND t.run_at <= p_now);
                ELSE
                    v_due := EXISTS (SELECT 1 FROM gristmill.task t
                         WHERE t.queue = p_queue.number AND t.source = p_source AND NOT t.blocked
                           AND t.priority = v_level AND t.run_at <= p_now);
                END IF;
            END LOOP;
        END IF;
        -- The others are not asked, however many there are: they are filled later.
        IF v_due THEN
            RETURN p_now + gristmill.span(gristmill.token_wait(p_queue.rate_tasks,
                       p_queue.rate_time, p_queue.burst, v_one.full_at, p_now));
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- So many more of each group: an object of numbers, and groups to be added to it.
CREATE FUNCTION gristmill.add_up(p_counts jsonb, p_groups text[]) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT coalesce(jsonb_object_agg(s.grp, s.n), '{}')
              FROM (SELECT x.grp, sum(x.n) AS n
                      FROM (SELECT e.key AS grp, e.value::bigint AS n
                              FROM jsonb_each_text(p_counts) e
                             UNION ALL SELECT g, 1 FROM unnest(p_groups) g) x
                     GROUP BY x.grp) s);
END
$$;

-- Due tasks in claim order of groups that have room, but none of those in p_not. Looks
-- at the front first, which is enough while few groups are full; then from group to
-- group, so that a million tasks of full groups cost one look a group. A step of the
-- front is one statement whatever its length: a claim of a thousand is not a thousand.
--   p_leased  how many of each are under lease
--   p_taken   how many of each are picked already
-- Answers parallel arrays, null where there is nothing.
CREATE FUNCTION gristmill.with_room(
    p_queue gristmill.queue, p_source text, p_leased jsonb, p_taken jsonb, p_max integer,
    p_not bigint[], p_now timestamptz,
    OUT ids bigint[], OUT groups text[], OUT suspects boolean[], OUT sizes integer[]
)
LANGUAGE plpgsql AS $$
DECLARE
    c_front  constant integer := 256;
    v_open   timestamptz := gristmill.open_until(p_queue, p_now);
    v_latest timestamptz := gristmill.full_by(p_queue, p_now);
    v_look   integer := c_front + p_max + cardinality(p_not);
    v_step   integer := p_max + cardinality(p_not) + 8;
    v_left   integer := p_max;
    v_level  smallint;
    v_at     timestamptz;
    v_id     bigint;
    v_group  text;
    v_room   integer;
    v_entry  record;
    v_front  record;
    v_some   record;
    v_levels smallint[] := '{}';
    v_run_ats timestamptz[] := '{}';
    v_ids    bigint[] := '{}';
BEGIN
    LOOP
        v_level := gristmill.next_level(p_queue.number, p_source, v_level);
        EXIT WHEN v_level IS NULL OR v_look <= 0;
        v_at := '-infinity';
        v_id := 0;
        LOOP
            v_step := least(v_step, v_look);
            -- A source has an index of its own, and so a statement of its own.
            IF p_source IS NULL THEN
                SELECT array_agg(f.run_at) AS run_ats, array_agg(f.id) AS ids,
                       array_agg(f.grp) AS groups, array_agg(f.suspect) AS suspects,
                       array_agg(f.bytes) AS sizes, count(*)::integer AS n
                  INTO v_front
                  FROM (SELECT t.run_at, t.id, coalesce(t.grp, '') AS grp,
                               t.expiries > 0 AS suspect, octet_length(t.payload) AS bytes
                          FROM gristmill.task t
                         WHERE t.queue = p_queue.number AND NOT t.blocked
                           AND t.priority = v_level AND t.run_at <= p_now
                           AND (t.run_at, t.id) > (v_at, v_id)
                         ORDER BY t.run_at, t.id LIMIT v_step) f;
            ELSE
                SELECT array_agg(f.run_at) AS run_ats, array_agg(f.id) AS ids,
                       array_agg(f.grp) AS groups, array_agg(f.suspect) AS suspects,
                       array_agg(f.bytes) AS sizes, count(*)::integer AS n
                  INTO v_front
                  FROM (SELECT t.run_at, t.id, coalesce(t.grp, '') AS grp,
                               t.expiries > 0 AS suspect, octet_length(t.payload) AS bytes
                          FROM gristmill.task t
                         WHERE t.queue = p_queue.number AND t.source = p_source
                           AND NOT t.blocked AND t.priority = v_level AND t.run_at <= p_now
                           AND (t.run_at, t.id) > (v_at, v_id)
                         ORDER BY t.run_at, t.id LIMIT v_step) f;
            END IF;
            EXIT WHEN v_front.n = 0;
            v_look := v_look - v_front.n;
            -- Of each group the first ones, as many as it has room for.
            SELECT array_agg(s.id) AS ids, array_agg(s.grp) AS groups,
                   array_agg(s.suspect) AS suspects, array_agg(s.bytes) AS sizes,
                   count(*)::integer AS n
              INTO v_some
              FROM (SELECT n.id, n.grp, n.suspect, n.bytes
                      FROM (SELECT u.id, u.grp, u.suspect, u.bytes, u.nth,
                                   row_number() OVER (PARTITION BY u.grp ORDER BY u.nth) AS place
                              FROM unnest(v_front.ids, v_front.groups, v_front.suspects,
                                          v_front.sizes)
                                   WITH ORDINALITY AS u (id, grp, suspect, bytes, nth)
                             WHERE u.id <> ALL (p_not)) n
                      JOIN (SELECT d.grp,
                                   gristmill.room_of_group(p_queue, p_leased, d.grp, p_now)
                                   - coalesce((p_taken ->> d.grp)::integer, 0) AS room
                              FROM (SELECT DISTINCT g AS grp FROM unnest(v_front.groups) g) d) r
                        ON r.grp = n.grp
                     WHERE n.place <= r.room
                     ORDER BY n.nth LIMIT v_left) s;
            IF v_some.n > 0 THEN
                ids := ids || v_some.ids;
                groups := groups || v_some.groups;
                suspects := suspects || v_some.suspects;
                sizes := sizes || v_some.sizes;
                v_left := v_left - v_some.n;
                IF v_left <= 0 THEN
                    RETURN;
                END IF;
                p_taken := gristmill.add_up(p_taken, v_some.groups);
                p_not := p_not || v_some.ids;
            END IF;
            EXIT WHEN v_front.n < v_step OR v_look <= 0;
            v_at := v_front.run_ats[v_front.n];
            v_id := v_front.ids[v_front.n];
            v_step := v_step * 4;
        END LOOP;
    END LOOP;
    IF v_look > 0 THEN
        RETURN;
    END IF;
    -- Those whose bucket is empty are left out, for nothing of them can be taken; but a
    -- stamp of a clock that was ahead is nothing to go by.
    FOR v_group IN
        SELECT g.grp FROM gristmill.named_groups(p_queue.number, p_source) AS g (grp)
         WHERE v_open IS NULL OR NOT EXISTS (
                   SELECT 1 FROM gristmill.bucket b
                    WHERE b.queue = p_queue.number AND b.grp = g.grp
                      AND b.full_at > v_open AND b.full_at <= v_latest)
    LOOP
        v_room := gristmill.room_of_group(p_queue, p_leased, v_group, p_now)
            - coalesce((p_taken ->> v_group)::integer, 0);
        CONTINUE WHEN v_room <= 0;
        FOR v_entry IN
            SELECT f.priority, f.run_at, f.id FROM gristmill.of_group(p_queue.number, p_source, v_group,
                least(v_room, v_left), p_not, p_now) f
        LOOP
            v_levels := v_levels || v_entry.priority;
            v_run_ats := v_run_ats || v_entry.run_at;
            v_ids := v_ids || v_entry.id;
        END LOOP;
    END LOOP;
    SELECT array_agg(s.id) AS ids, array_agg(s.grp) AS groups,
           array_agg(s.suspect) AS suspects, array_agg(s.bytes) AS sizes, count(*) AS n
      INTO v_some
      FROM (SELECT t.id, coalesce(t.grp, '') AS grp, t.expiries > 0 AS suspect,
                   octet_length(t.payload) AS bytes
              FROM (SELECT u.id, u.priority, u.run_at
                      FROM unnest(v_levels, v_run_ats, v_ids) AS u (priority, run_at, id)
                     ORDER BY u.priority, u.run_at, u.id LIMIT v_left) o
              JOIN gristmill.task t ON t.id = o.id
             ORDER BY o.priority, o.run_at, o.id) s;
    IF v_some.n > 0 THEN
        ids := ids || v_some.ids;
        groups := groups || v_some.groups;
        suspects := suspects || v_some.suspects;
        sizes := sizes || v_some.sizes;
    END IF;
END
$$;

-- The first due tasks of one group that are none of p_not, in claim order.
CREATE FUNCTION gristmill.of_group(
    p_queue integer, p_source text, p_group text, p_max integer, p_not bigint[],
    p_now timestamptz
) RETURNS TABLE (priority smallint, run_at timestamptz, id bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_level smallint;
    v_count integer;
BEGIN
    LOOP
        IF p_source IS NULL THEN
            SELECT t.priority INTO v_level FROM gristmill.task t
             WHERE t.queue = p_queue AND t.slotted AND NOT t.blocked
               AND coalesce(t.grp, '') = p_group AND t.priority > coalesce(v_level::integer, -32769)
             ORDER BY t.priority LIMIT 1;
            EXIT WHEN NOT FOUND;
            RETURN QUERY SELECT t.priority, t.run_at, t.id FROM gristmill.task t
             WHERE t.queue = p_queue AND t.slotted AND NOT t.blocked
               AND coalesce(t.grp, '') = p_group AND t.priority = v_level AND t.run_at <= p_now
               AND t.id <> ALL (p_not)
             ORDER BY t.run_at, t.id LIMIT p_max;
        ELSE
            SELECT t.priority INTO v_level FROM gristmill.task t
             WHERE t.queue = p_queue AND t.source = p_source AND t.slotted AND NOT t.blocked
               AND coalesce(t.grp, '') = p_group AND t.priority > coalesce(v_level::integer, -32769)
             ORDER BY t.priority LIMIT 1;
            EXIT WHEN NOT FOUND;
            RETURN QUERY SELECT t.priority, t.run_at, t.id FROM gristmill.task t
             WHERE t.queue = p_queue AND t.source = p_source AND t.slotted AND NOT t.blocked
               AND coalesce(t.grp, '') = p_group AND t.priority = v_level AND t.run_at <= p_now
               AND t.id <> ALL (p_not)
             ORDER BY t.run_at, t.id LIMIT p_max;
        END IF;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        p_max := p_max - v_count;
        EXIT WHEN p_max <= 0;
    END LOOP;
END
$$;

-- The same as with_room, but groups take turns: of each priority one task of each group at
-- a time, from behind the group whose turn it was last. The first round goes from group to
-- group until the claim is full, however many there are; who had nothing in it is not asked
-- again. Of the others as many are taken at once as the claim still wants of each.
CREATE FUNCTION gristmill.in_turns(
    p_queue gristmill.queue, p_source text, p_leased jsonb, p_taken jsonb, p_max integer,
    p_not bigint[], p_now timestamptz,
    OUT ids bigint[], OUT groups text[], OUT suspects boolean[], OUT sizes integer[]
)
LANGUAGE plpgsql AS $$
DECLARE
    -- Without a limit of its own a group has room.
    v_roomy  boolean := p_queue.concurrency IS NULL AND p_queue.rate_tasks IS NULL
                        AND p_taken = '{}';
    v_left   integer := p_max;
    v_level  smallint;
    v_last   text;
    v_wraps  boolean;
    v_each   integer;
    -- Who had something so far: the place of each, and what room it has left.
    v_open   timestamptz := gristmill.open_until(p_queue, p_now);
    v_latest timestamptz := gristmill.full_by(p_queue, p_now);
    r_groups text[];
    r_ats    timestamptz[];
    r_ids    bigint[];
    r_rooms  integer[];
    v_more   record;
BEGIN
    LOOP
        v_level := gristmill.next_level(p_queue.number, p_source, v_level);
        EXIT WHEN v_level IS NULL;
        v_last := (SELECT t.grp FROM gristmill.turn t
                    WHERE t.queue = p_queue.number AND t.priority = v_level);
        r_groups := '{}';
        r_ats := '{}';
        r_ids := '{}';
        r_rooms := '{}';
        FOREACH v_wraps IN ARRAY CASE WHEN v_last IS NULL THEN ARRAY[false]
                                      ELSE ARRAY[false, true] END LOOP
            WITH RECURSIVE turns AS (
                SELECT CASE WHEN v_last IS NULL OR v_wraps
                    THEN (SELECT coalesce(t.grp, '') FROM gristmill.task t
                           WHERE t.queue = p_queue.number AND t.priority = v_level
                             AND t.slotted AND NOT t.blocked
                           ORDER BY coalesce(t.grp, '') LIMIT 1)
                    ELSE (SELECT coalesce(t.grp, '') FROM gristmill.task t
                           WHERE t.queue = p_queue.number AND t.priority = v_level
                             AND t.slotted AND NOT t.blocked AND coalesce(t.grp, '') > v_last
                           ORDER BY coalesce(t.grp, '') LIMIT 1) END AS grp
                UNION ALL
                SELECT (SELECT coalesce(t.grp, '') FROM gristmill.task t
                         WHERE t.queue = p_queue.number AND t.priority = v_level
                           AND t.slotted AND NOT t.blocked AND coalesce(t.grp, '') > g.grp
                         ORDER BY coalesce(t.grp, '') LIMIT 1)
                  FROM turns g
                 WHERE g.grp IS NOT NULL AND (NOT v_wraps OR g.grp < v_last)
            )
            SELECT array_agg(f.grp) AS groups, array_agg(f.run_at) AS run_ats,
                   array_agg(f.id) AS ids, array_agg(f.suspect) AS suspects,
                   array_agg(f.bytes) AS sizes, array_agg(f.room - 1) AS rooms,
                   count(*)::integer AS n
              INTO v_more
              FROM (SELECT g.grp, n.run_at, n.id, n.suspect, n.bytes, r.room
                      FROM turns g
                     CROSS JOIN LATERAL (SELECT CASE WHEN v_roomy THEN 2147483647
                         ELSE gristmill.room_of_group(p_queue, p_leased, g.grp, p_now)
                              - coalesce((p_taken ->> g.grp)::integer, 0) END AS room) r
                     CROSS JOIN LATERAL (
                         (SELECT t.run_at, t.id, t.expiries > 0 AS suspect,
                                 octet_length(t.payload) AS bytes
                            FROM gristmill.task t
                           WHERE p_source IS NULL AND t.queue = p_queue.number AND t.slotted
                             AND NOT t.blocked AND coalesce(t.grp, '') = g.grp
                             AND t.priority = v_level AND t.run_at <= p_now
                             AND t.id <> ALL (p_not)
                           ORDER BY t.run_at, t.id LIMIT 1)
                         UNION ALL
                         SELECT x.run_at, x.id, x.suspect, x.bytes
                           FROM gristmill.next_in_turn(p_queue.number, p_source, v_level, g.grp,
                                    p_not, '-infinity', 0, 1, p_now) x
                          WHERE p_source IS NOT NULL) n
                     WHERE g.grp IS NOT NULL AND (NOT v_wraps OR g.grp <= v_last) AND r.room > 0
                       AND (v_open IS NULL OR NOT EXISTS (
                               SELECT 1 FROM gristmill.bucket b
                                WHERE b.queue = p_queue.number AND b.grp = g.grp
                                  AND b.full_at > v_open AND b.full_at <= v_latest))
                     LIMIT v_left) f;
            CONTINUE WHEN v_more.n = 0;
            ids := ids || v_more.ids;
            groups := groups || v_more.groups;
            suspects := suspects || v_more.suspects;
            sizes := sizes || v_more.sizes;
            v_left := v_left - v_more.n;
            IF v_left <= 0 THEN
                RETURN;
            END IF;
            r_groups := r_groups || v_more.groups;
            r_ats := r_ats || v_more.run_ats;
            r_ids := r_ids || v_more.ids;
            r_rooms := r_rooms || v_more.rooms;
        END LOOP;
        -- Round by round, as many rounds at once as the claim may hold of all of them.
        WHILE cardinality(r_groups) > 0 LOOP
            v_each := greatest(v_left / cardinality(r_groups), 1);
            SELECT array_agg(f.grp) AS groups, array_agg(f.run_at) AS run_ats,
                   array_agg(f.id) AS ids, array_agg(f.suspect) AS suspects,
                   array_agg(f.bytes) AS sizes, array_agg(f.nth) AS nths,
                   array_agg(f.place) AS places, count(*)::integer AS n
              INTO v_more
              FROM (SELECT u.grp, n.run_at, n.id, n.suspect, n.bytes, u.nth, n.place
                      FROM unnest(r_groups, r_ats, r_ids, r_rooms)
                           WITH ORDINALITY AS u (grp, run_at, id, room, nth)
                     CROSS JOIN LATERAL gristmill.next_in_turn(p_queue.number, p_source, v_level,
                         u.grp, p_not, u.run_at, u.id, least(v_each, u.room), p_now) n
                     WHERE u.room > 0
                     ORDER BY n.place, u.nth LIMIT v_left) f;
            EXIT WHEN v_more.n = 0;
            ids := ids || v_more.ids;
            groups := groups || v_more.groups;
            suspects := suspects || v_more.suspects;
            sizes := sizes || v_more.sizes;
            v_left := v_left - v_more.n;
            IF v_left <= 0 THEN
                RETURN;
            END IF;
            -- Those that gave all that was asked of them.
            SELECT coalesce(array_agg(l.grp), '{}'), coalesce(array_agg(l.run_at), '{}'),
                   coalesce(array_agg(l.id), '{}'),
                   coalesce(array_agg(r_rooms[l.nth] - v_each), '{}')
              INTO r_groups, r_ats, r_ids, r_rooms
              FROM (SELECT u.grp, u.run_at, u.id, u.nth
                      FROM unnest(v_more.groups, v_more.run_ats, v_more.ids, v_more.nths,
                                  v_more.places) AS u (grp, run_at, id, nth, place)
                     WHERE u.place = v_each
                     ORDER BY u.nth) l;
        END LOOP;
    END LOOP;
END
$$;

-- The first due tasks of a group in one priority behind a place, but none of p_not.
CREATE FUNCTION gristmill.next_in_turn(
    p_queue integer, p_source text, p_level smallint, p_group text, p_not bigint[],
    p_after timestamptz, p_after_id bigint, p_max integer, p_now timestamptz
) RETURNS TABLE (run_at timestamptz, id bigint, suspect boolean, bytes integer, place integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF p_source IS NULL THEN
        RETURN QUERY
        SELECT f.run_at, f.id, f.suspect, f.bytes, (row_number() OVER ())::integer
          FROM (SELECT t.run_at, t.id, t.expiries > 0 AS suspect, octet_length(t.payload) AS bytes
                  FROM gristmill.task t
                 WHERE t.queue = p_queue AND t.slotted AND NOT t.blocked
                   AND coalesce(t.grp, '') = p_group AND t.priority = p_level AND t.run_at <= p_now
                   AND (t.run_at, t.id) > (p_after, p_after_id) AND t.id <> ALL (p_not)
                 ORDER BY t.run_at, t.id LIMIT p_max) f;
    ELSE
        RETURN QUERY
        SELECT f.run_at, f.id, f.suspect, f.bytes, (row_number() OVER ())::integer
          FROM (SELECT t.run_at, t.id, t.expiries > 0 AS suspect, octet_length(t.payload) AS bytes
                  FROM gristmill.task t
                 WHERE t.queue = p_queue AND t.source = p_source AND t.slotted AND NOT t.blocked
                   AND coalesce(t.grp, '') = p_group AND t.priority = p_level AND t.run_at <= p_now
                   AND (t.run_at, t.id) > (p_after, p_after_id) AND t.id <> ALL (p_not)
                 ORDER BY t.run_at, t.id LIMIT p_max) f;
    END IF;
END
$$;

-- Picks tasks by their ids, those that still stand, and takes their keys into flight.
-- Their places, in the order of the ids.
CREATE FUNCTION gristmill.pick_those(p_ids bigint[], p_now timestamptz) RETURNS tid[]
LANGUAGE plpgsql AS $$
DECLARE
    v_places tid[];
    v_keyed  tid[];
    v_flown  bigint[];
BEGIN
    SELECT array_agg(p.ctid), array_agg(p.ctid) FILTER (WHERE p.key IS NOT NULL AND NOT p.in_flight)
      INTO v_places, v_keyed
      FROM (SELECT t.ctid, t.key, t.in_flight
              FROM unnest(p_ids) AS u (id) JOIN gristmill.task t ON t.id = u.id
             WHERE NOT t.blocked
               FOR UPDATE OF t SKIP LOCKED) p;
    IF v_keyed IS NOT NULL THEN
        -- As in pick: who is in flight already is set aside.
        WITH flown AS (
            INSERT INTO gristmill.flight (queue, key, id)
            SELECT t.queue, t.key, t.id FROM gristmill.task t
             WHERE t.ctid = ANY (v_keyed)
               AND (SELECT f.id FROM gristmill.flight f
                     WHERE f.queue = t.queue AND f.key = t.key) IS NULL
            ON CONFLICT DO NOTHING
            RETURNING id
        )
        SELECT array_agg(f.id) INTO v_flown FROM flown f;
        IF cardinality(v_keyed) > coalesce(cardinality(v_flown), 0) THEN
            v_keyed := gristmill.set_aside(v_keyed, coalesce(v_flown, '{}'), p_now);
            v_places := ARRAY(SELECT p FROM unnest(v_places) p WHERE p <> ALL (v_keyed));
        END IF;
    END IF;
    RETURN coalesce(v_places, '{}');
END
$$;

-- Picks due tasks of groups that have room: locks them and takes their keys into flight.
-- The caller has the turn, so nobody else claims meanwhile. A suspect is taken alone, and
-- bytes are bounded, as in pick.
CREATE FUNCTION gristmill.pick_by_group(
    p_queue gristmill.queue, p_source text, p_max integer, p_bytes bigint, p_now timestamptz
) RETURNS tid[]
LANGUAGE plpgsql AS $$
DECLARE
    v_leased jsonb := '{}';
    v_taken  jsonb := '{}';
    v_places tid[] := '{}';
    v_more   tid[];
    v_passed bigint[] := '{}';
    v_bytes  bigint := 0;
    v_next   record;
    v_cut    integer;
    v_stops  boolean;
BEGIN
    IF p_queue.concurrency IS NOT NULL AND p_queue.concurrency_per_group THEN
        v_leased := gristmill.leased_by_group(p_queue.number);
    END IF;
    -- A task that an open transaction holds, or that had to be set aside, is passed by,
    -- and another one may have its room.
    FOR v_try IN 1..100 LOOP
        IF p_queue.fair THEN
            SELECT * INTO v_next FROM gristmill.in_turns(p_queue, p_source, v_leased, v_taken,
                p_max - cardinality(v_places), v_passed, p_now);
        ELSE
            SELECT * INTO v_next FROM gristmill.with_room(p_queue, p_source, v_leased, v_taken,
                p_max - cardinality(v_places), v_passed, p_now);
        END IF;
        EXIT WHEN v_next.ids IS NULL;
        -- Where to stop: before a suspect, unless it is the first of all; and before the
        -- bytes are too many, but after one task.
        v_cut := cardinality(v_next.ids);
        v_stops := false;
        FOR i IN 1..v_cut LOOP
            IF v_places <> '{}' OR i > 1 THEN
                v_stops := v_next.suspects[i] OR v_bytes + v_next.sizes[i] > p_bytes;
                IF v_stops THEN
                    v_cut := i - 1;
                    EXIT;
                END IF;
            ELSIF v_next.suspects[i] THEN
                v_stops := true;
                v_cut := i;
                EXIT;
            END IF;
            v_bytes := v_bytes + v_next.sizes[i];
        END LOOP;
        v_more := gristmill.pick_those(v_next.ids[1:v_cut], p_now);
        v_places := v_places || v_more;
        -- All of them were held or set aside: the next ones are not.
        EXIT WHEN v_stops AND v_places <> '{}';
        EXIT WHEN NOT v_stops AND cardinality(v_more) = v_cut;
        v_passed := v_passed || v_next.ids[1:v_cut];
        v_taken := gristmill.add_up(v_taken, ARRAY(
            SELECT coalesce(t.grp, '') FROM gristmill.task t WHERE t.ctid = ANY (v_more)));
    END LOOP;
    RETURN v_places;
END
$$;

-- Claims. The first row always tells the claim itself (lease, paused,
-- next_due, swept, failed); task columns are null when nothing was taken, and
-- in a first row of its own when tasks failed whose lease had run out.
--   p_levels, p_run_ats, p_ids
--               where this process's last claims of these priorities ended, the
--               most urgent first: the scan of each begins there instead of
--               walking again over what is dead in front
--   p_sweep     look from the front as well when these gave too few
--   p_clean     leases that ran out before this were all taken back, as an
--               earlier answer said: dead entries in front of it are passed
--               over. clean says that there are none up to now
--   p_held      as of expire. held_back is the shortest lease that ran out and is
--               left alone because of it, if nothing was taken
--   p_own       the transaction is this call's own: without slots, unless the
--               queue says otherwise, and if no lease was taken away, it may
--               commit asynchronously, for a lost claim is only a redelivery
CREATE FUNCTION gristmill.claim_tasks(
    p_queue text, p_max integer, p_lease bigint, p_worker text, p_source text, p_token uuid,
    p_levels smallint[] DEFAULT NULL, p_run_ats timestamptz[] DEFAULT NULL,
    p_ids bigint[] DEFAULT NULL, p_sweep boolean DEFAULT true, p_own boolean DEFAULT false,
    p_held bigint DEFAULT NULL, p_bytes bigint DEFAULT 16777216, p_leases integer DEFAULT 64,
    p_kept integer DEFAULT 10, p_now timestamptz DEFAULT NULL,
    p_clean timestamptz DEFAULT NULL
) RETURNS TABLE (
    now timestamptz, lease bigint, paused boolean, next_due timestamptz, swept bigint,
    id bigint, payload bytea, encoding smallint, key text, grp text, source text,
    priority smallint, attempt integer, claims integer, created_at timestamptz,
    run_at timestamptz, prev_run_at timestamptz, headers text, settings text, expiries smallint,
    concurrent integer, slot integer, failed bigint[], clean boolean, held_back bigint,
    checkpoint bytea
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
#variable_conflict use_column
DECLARE
    v_now     timestamptz := coalesce(p_now, clock_timestamp());
    v_queue   gristmill.queue;
    v_lease   interval;
    v_micros  bigint;
    v_places  tid[];
    v_step    record;
    v_one     record;
    v_level   smallint;
    v_left    integer := p_max;
    v_bytes   bigint := p_bytes;
    v_full    boolean := false;
    v_hinted  boolean := true;
    v_known   integer := 1;
    v_here    boolean;
    v_begin   timestamptz;
    v_swept   bigint;
    v_group   text;
    v_slot    integer;
    v_count   integer;
    v_delayed integer := 0;
    v_any     boolean := false;
    v_failed  bigint[];
    v_passed  bigint[] := '{}';
    v_clean   boolean;
    v_held    bigint;
    -- What was due by then had waited no longer than the bucket's bound.
    v_due     timestamptz[];
BEGIN
    SELECT * INTO v_queue FROM gristmill.queue q WHERE q.name = p_queue;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no queue ''%''', p_queue USING ERRCODE = 'GM404';
    END IF;
    IF EXISTS (SELECT 1 FROM gristmill.lease l WHERE l.token = p_token) THEN
        RAISE EXCEPTION 'this token has claimed before' USING ERRCODE = 'GM409';
    END IF;
    v_lease := coalesce(gristmill.span(p_lease), v_queue.lease);
    v_micros := extract(epoch FROM v_lease) * 1000000;
    IF v_queue.paused THEN
        RETURN QUERY SELECT v_now, v_micros, true,
            NULL::timestamptz, NULL::bigint, NULL::bigint, NULL::bytea, NULL::smallint,
            NULL::text, NULL::text, NULL::text, NULL::smallint, NULL::integer, NULL::integer,
            NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::text, NULL::text,
            NULL::smallint, NULL::integer, NULL::integer, NULL::bigint[], false, NULL::bigint, NULL::bytea;
        RETURN;
    END IF;
    v_clean := NOT EXISTS (SELECT 1 FROM gristmill.deadline d
                            WHERE d.queue = v_queue.number AND d.until <= v_now
                              AND d.until > coalesce(p_clean, '-infinity'));
    IF NOT v_clean THEN
        -- What comes back stands in front of the hint.
        SELECT e.taken = 0, e.failed INTO v_hinted, v_failed
          FROM gristmill.expire(v_queue.number, p_leases, p_held, p_kept, v_now) e;
    END IF;
    IF p_own AND NOT v_queue.frees AND NOT v_queue.limited AND NOT v_queue.durable_claims
       AND v_hinted THEN
        -- Not when leases were taken away: lost in a crash, this claim would
        -- leave their old tokens good again while others hold the tasks.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;

    IF v_queue.slots IS NOT NULL THEN
        -- One claimer of the queue at a time. The lock is taken in a statement
        -- of its own: those after it see what the one before committed.
        IF gristmill.turn_to_claim(v_queue.number) THEN
            -- A task that an open transaction holds, or that had to be set aside,
            -- is passed by, however many there are.
            FOR v_try IN 1..1000 LOOP
                SELECT * INTO v_one FROM gristmill.first_with_slot(v_queue.number, p_source,
                    v_queue.slots, v_passed, v_now);
                EXIT WHEN v_one.id IS NULL;
                v_places := gristmill.pick_one(v_one.id, v_now);
                v_slot := v_one.slot;
                EXIT WHEN v_places IS NOT NULL;
                v_passed := v_passed || v_one.id;
            END LOOP;
        END IF;
        v_any := true;
    ELSIF v_queue.grouped THEN
        IF v_queue.count THEN
            v_left := 1;
        END IF;
        -- The counts are statements of their own: they see what the turn before committed.
        IF gristmill.limited_turn(v_queue.number) THEN
            v_left := least(v_left, gristmill.room_of_queue(v_queue, v_now));
            IF v_left > 0 THEN
                v_places := gristmill.pick_by_group(v_queue, p_source, v_left, p_bytes, v_now);
            END IF;
        END IF;
        v_any := true;
    ELSE
        IF v_queue.count THEN
            v_left := 1;
        END IF;
        IF v_queue.limited THEN
            IF gristmill.limited_turn(v_queue.number) THEN
                v_left := least(v_left, gristmill.room_of_queue(v_queue, v_now));
            ELSE
                v_left := 0;
            END IF;
        END IF;
        v_hinted := v_hinted AND p_levels IS NOT NULL AND p_source IS NULL;
        -- Level by level, the most urgent first. A known level begins where its
        -- last claim ended; the look for the level after it passes over its
        -- dead entries, because it asks for what is beyond them.
        v_begin := clock_timestamp();
        LOOP
            v_level := gristmill.next_level(v_queue.number, p_source, v_level,
                CASE WHEN v_hinted THEN p_levels[v_known] END);
            EXIT WHEN v_level IS NULL;
            v_here := v_hinted AND v_level = p_levels[v_known];
            SELECT * INTO v_step FROM gristmill.pick(v_queue.number, v_level, v_left, p_source,
                CASE WHEN v_here THEN p_run_ats[v_known] END, p_ids[v_known], false, v_bytes,
                v_places IS NULL, v_now);
            v_known := v_known + coalesce(v_here, false)::integer;
            v_places := v_places || v_step.places;
            v_left := v_left - coalesce(cardinality(v_step.places), 0);
            v_bytes := v_bytes - v_step.bytes;
            v_any := v_any OR coalesce(v_step.any_delayed, false);
            v_full := v_step.full_up OR v_left <= 0;
            EXIT WHEN v_full;
        END LOOP;
        IF NOT v_hinted THEN
            v_swept := extract(epoch FROM clock_timestamp() - v_begin) * 1000000;
        ELSIF p_sweep AND NOT v_full THEN
            -- Too few: what came back to a place in front of where claims are?
            v_begin := clock_timestamp();
            FOR v_known IN 1..cardinality(p_levels) LOOP
                SELECT * INTO v_step FROM gristmill.pick(v_queue.number, p_levels[v_known], v_left,
                    NULL, p_run_ats[v_known], p_ids[v_known], true, v_bytes, v_places IS NULL,
                    v_now);
                v_places := v_places || v_step.places;
                v_left := v_left - coalesce(cardinality(v_step.places), 0);
                v_bytes := v_bytes - v_step.bytes;
                v_any := v_any OR coalesce(v_step.any_delayed, false);
                EXIT WHEN v_step.full_up OR v_left <= 0;
            END LOOP;
            v_swept := extract(epoch FROM clock_timestamp() - v_begin) * 1000000;
        END IF;
    END IF;

    IF v_places IS NULL OR v_places = '{}' THEN
        IF p_held IS NOT NULL AND NOT v_clean THEN
            v_held := (SELECT extract(epoch FROM min(d.lease)) * 1000000
                         FROM gristmill.deadline d
                        WHERE d.queue = v_queue.number AND d.until <= v_now
                          AND d.lease / 3 > gristmill.span(p_held));
        END IF;
        RETURN QUERY SELECT v_now, v_micros, false,
            least(gristmill.next_due(v_queue.number, p_source, v_now),
                  gristmill.refill(v_queue, p_source, v_now)), v_swept, NULL::bigint,
            NULL::bytea, NULL::smallint, NULL::text, NULL::text, NULL::text, NULL::smallint,
            NULL::integer, NULL::integer, NULL::timestamptz, NULL::timestamptz,
            NULL::timestamptz, NULL::text, NULL::text, NULL::smallint, NULL::integer,
            NULL::integer, v_failed, v_clean, v_held, NULL::bytea;
        RETURN;
    END IF;
    IF v_queue.count OR v_queue.slots IS NOT NULL THEN
        v_group := (SELECT coalesce(t.grp, '') FROM gristmill.task t WHERE t.ctid = v_places[1]);
        SELECT count(*) INTO v_count FROM gristmill.lease l
         WHERE l.queue = v_queue.number AND l.grp = v_group
           AND (SELECT d.until FROM gristmill.deadline d WHERE d.token = l.token) > v_now;
    END IF;
    IF v_queue.fair THEN
        -- In the order in which they were picked: whose turn it was last.
        INSERT INTO gristmill.turn AS u (queue, priority, grp)
        SELECT DISTINCT ON (t.priority) v_queue.number, t.priority, coalesce(t.grp, '')
          FROM unnest(v_places) WITH ORDINALITY AS p (place, nth)
          JOIN gristmill.task t ON t.ctid = p.place
         ORDER BY t.priority, p.nth DESC
        ON CONFLICT (queue, priority) DO UPDATE SET grp = excluded.grp;
    END IF;
    IF v_queue.rate_tasks IS NOT NULL THEN
        PERFORM gristmill.take_tokens(v_queue, v_places, v_now);
    END IF;
    IF v_any THEN
        DELETE FROM gristmill.delayed d
         WHERE d.ctid = ANY (ARRAY(
                   SELECT (SELECT x.ctid FROM gristmill.delayed x
                            WHERE x.run_at = t.run_at AND x.id = t.id)
                     FROM gristmill.task t WHERE t.ctid = ANY (v_places) AND t.delayed));
        GET DIAGNOSTICS v_delayed = ROW_COUNT;
    END IF;
    IF v_failed IS NOT NULL THEN
        -- Not beside each task: thousands may have failed.
        RETURN QUERY SELECT v_now, v_micros, false, NULL::timestamptz, v_swept, NULL::bigint,
            NULL::bytea, NULL::smallint, NULL::text, NULL::text, NULL::text, NULL::smallint,
            NULL::integer, NULL::integer, NULL::timestamptz, NULL::timestamptz,
            NULL::timestamptz, NULL::text, NULL::text, NULL::smallint, NULL::integer,
            NULL::integer, v_failed, v_clean, NULL::bigint, NULL::bytea;
    END IF;
    IF v_lease < v_queue.lease AND v_lease < gristmill.longest_quiet() THEN
        -- It may run out before the others look again by themselves.
        PERFORM pg_notify('gristmill.wake', '!');
    END IF;
    v_due := ARRAY[v_now - interval '1 hour', v_now - interval '10 minutes',
                   v_now - interval '1 minute', v_now - interval '10 seconds',
                   v_now - interval '1 second', v_now - interval '100 milliseconds'];
    -- The tasks leave `task`, stand in the lease and are answered in one
    -- statement: each is read once and written once.
    RETURN QUERY
    WITH gone AS (
        DELETE FROM gristmill.task t
         WHERE t.ctid = ANY (v_places)
        RETURNING ROW (t.id, t.created_at, t.run_at, t.queue, t.attempts, t.claims, t.expiries,
                      t.started_releases, t.priority, t.encoding, t.unique_active, t.key, t.grp,
                      t.source, t.headers, t.settings, t.payload, t.prev_run_at, t.claimed_at, t.settled,
                      t.error, t.history, t.note, t.note_by)::gristmill.held AS task,
                  t.id, t.payload, t.encoding, t.key, t.grp, t.source, t.priority,
                  t.attempts, t.claims, t.created_at, t.run_at, t.prev_run_at, t.headers, t.settings,
                  t.expiries,
                  -- Whoever was not claimed before has kept nothing.
                  CASE WHEN t.claims > 0 THEN (SELECT c.state FROM gristmill.checkpoint c
                                                WHERE c.id = t.id) END AS checkpoint
    ), leased AS (
        INSERT INTO gristmill.lease (token, claimed_at, queue, slot, grp, worker, open, keyed,
            keys, kept, groups, ids, tasks)
        SELECT p_token, v_now, v_queue.number, v_slot, v_group, p_worker, array_agg(g.id ORDER BY g.id),
               array_agg(g.id) FILTER (WHERE g.key IS NOT NULL),
               array_agg(g.key) FILTER (WHERE g.key IS NOT NULL),
               nullif(bool_or(g.checkpoint IS NOT NULL), false),
               CASE WHEN v_queue.concurrency IS NOT NULL AND v_queue.concurrency_per_group
                    THEN array_agg(coalesce(g.grp, '')) END, array_agg(g.id),
               array_agg(g.task)
          FROM gone g
    ), ending AS (
        INSERT INTO gristmill.deadline (token, until, lease, queue)
        VALUES (p_token, gristmill.later(v_now, v_lease), v_lease, v_queue.number)
    ), counted AS (
        INSERT INTO gristmill.delta (at, queue, ready, delayed, processing, claimed, waits)
        SELECT v_now, v_queue.number, v_delayed - w.n, -v_delayed, w.n, w.n,
               -- Mostly all of a batch waited about as long: then no row is looked at by
               -- each bound.
               CASE WHEN width_bucket(w.first, v_due) = width_bucket(w.last, v_due)
                    THEN array_fill(0, ARRAY[6 - width_bucket(w.first, v_due)]) || w.n
                         || array_fill(0, ARRAY[width_bucket(w.first, v_due)])
                    ELSE (SELECT ARRAY[b.a, b.b - b.a, b.c - b.b, b.d - b.c, b.e - b.d,
                                       b.f - b.e, w.n - b.f]
                            FROM (SELECT
                       count(*) FILTER (WHERE g.run_at >= v_due[6])::integer AS a,
                       count(*) FILTER (WHERE g.run_at >= v_due[5])::integer AS b,
                       count(*) FILTER (WHERE g.run_at >= v_due[4])::integer AS c,
                       count(*) FILTER (WHERE g.run_at >= v_due[3])::integer AS d,
                       count(*) FILTER (WHERE g.run_at >= v_due[2])::integer AS e,
                       count(*) FILTER (WHERE g.run_at >= v_due[1])::integer AS f
                  FROM gone g) b) END
          FROM (SELECT count(*)::integer AS n, min(g.run_at) AS first, max(g.run_at) AS last
                  FROM gone g) w
    ), seen AS (
        -- What was put meanwhile in transactions that are committed by now is
        -- answered by this run; see take_markers.
        DELETE FROM gristmill.marker m
         WHERE m.ctid = ANY (ARRAY(
                   SELECT x.ctid FROM gristmill.marker x
                    WHERE x.key = ANY (ARRAY(SELECT g.key FROM gone g WHERE g.key IS NOT NULL))
                      AND x.queue = v_queue.number
                      FOR UPDATE SKIP LOCKED))
    )
    SELECT v_now, v_micros, false, NULL::timestamptz, v_swept, g.id, g.payload, g.encoding,
           g.key::text, g.grp::text, g.source::text, g.priority, g.attempts + 1, g.claims + 1,
           g.created_at, g.run_at, g.prev_run_at, g.headers::text, g.settings::text, g.expiries, v_count, v_slot,
           NULL::bigint[], v_clean, NULL::bigint, g.checkpoint
      FROM gone g;
END
$$;
