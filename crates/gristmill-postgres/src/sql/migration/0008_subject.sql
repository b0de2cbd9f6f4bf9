-- Bound subjects: the application's rows that a queue's tasks are about.
-- Triggers on the application's table delete the tasks of a deleted subject,
-- whoever deletes it, in the same transaction.

-- Deletes every task of these keys, in every state. A processing one's worker
-- is told at its next heartbeat.
CREATE FUNCTION gristmill.subjects_gone(p_queue integer, p_keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_now    timestamptz := clock_timestamp();
    v_task   gristmill.task;
    v_flight bigint[];
    v_gone   integer := 0;
    v_count  integer;
BEGIN
    SELECT array_agg(f.id) INTO v_flight FROM gristmill.flight f
     WHERE f.queue = p_queue AND f.key = ANY (p_keys);
    FOR v_task IN
        DELETE FROM gristmill.task t
         WHERE (t.queue = p_queue AND t.key = ANY (p_keys) AND NOT t.in_flight)
            OR t.id = ANY (v_flight)
        RETURNING t.*
    LOOP
        PERFORM gristmill.count_out(v_task, v_now);
        v_gone := v_gone + 1;
    END LOOP;
    WITH cut AS (
        UPDATE gristmill.lease l
           SET open = ARRAY(SELECT unnest(l.open) EXCEPT SELECT unnest(v_flight) ORDER BY 1),
               lost = l.lost || ARRAY(SELECT unnest(l.open) INTERSECT SELECT unnest(v_flight))
         WHERE l.queue = p_queue AND l.open && v_flight
        RETURNING ARRAY(SELECT unnest(l.lost) INTERSECT SELECT unnest(v_flight)) AS lost
    )
    SELECT coalesce(sum(cardinality(c.lost)), 0) INTO v_count FROM cut c;
    v_gone := v_gone + v_count;
    DELETE FROM gristmill.lease l WHERE l.queue = p_queue AND l.open = '{}';
    INSERT INTO gristmill.delta (at, queue, processing) VALUES (v_now, p_queue, -v_count);
    DELETE FROM gristmill.flight f WHERE f.queue = p_queue AND f.key = ANY (p_keys);
    DELETE FROM gristmill.failed t WHERE t.queue = p_queue AND t.key = ANY (p_keys);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_gone := v_gone + v_count;
    INSERT INTO gristmill.delta (at, queue, failed_now) VALUES (v_now, p_queue, -v_count);
    DELETE FROM gristmill.done t WHERE t.queue = p_queue AND t.key = ANY (p_keys);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    -- A kept task was counted when it was done.
    INSERT INTO gristmill.delta (at, queue, done_kept, subject_gone)
    VALUES (v_now, p_queue, -v_count, v_gone);
END
$$;

-- The triggers' function. Arguments: the queue's number, the column.
CREATE FUNCTION gristmill.subject_trigger() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    v_keys text[];
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        SELECT array_agg(DISTINCT k.key) INTO v_keys
          FROM (SELECT t.key FROM gristmill.task t WHERE t.queue = TG_ARGV[0]::integer
                UNION ALL
                SELECT f.key FROM gristmill.flight f WHERE f.queue = TG_ARGV[0]::integer
                UNION ALL
                SELECT t.key FROM gristmill.failed t WHERE t.queue = TG_ARGV[0]::integer
                UNION ALL
                SELECT t.key FROM gristmill.done t WHERE t.queue = TG_ARGV[0]::integer) k
         WHERE k.key IS NOT NULL;
    ELSE
        -- A key that still stands (the column was set to its old value, or
        -- another row has it) keeps its tasks.
        EXECUTE format('SELECT array_agg(o.%1$I::text) FROM gone o WHERE o.%1$I IS NOT NULL'
            ' AND NOT EXISTS (SELECT 1 FROM %2$s s WHERE s.%1$I = o.%1$I)',
            TG_ARGV[1], TG_RELID::regclass) INTO v_keys;
    END IF;
    IF v_keys IS NOT NULL THEN
        PERFORM gristmill.subjects_gone(TG_ARGV[0]::integer, v_keys);
    END IF;
    RETURN NULL;
END
$$;

-- Makes the triggers of a queue say what its settings say. Null unbinds.
CREATE FUNCTION gristmill.bind_subject(p_queue integer, p_table text, p_column text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_old   record;
    v_event text;
BEGIN
    FOR v_old IN
        SELECT t.tgname, t.tgrelid::regclass AS place FROM pg_trigger t
         WHERE t.tgname LIKE 'gristmill\_' || p_queue || '\_%' AND NOT t.tgisinternal
           AND t.tgfoid = 'gristmill.subject_trigger()'::regprocedure
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', v_old.tgname, v_old.place);
    END LOOP;
    IF p_table IS NULL THEN
        RETURN;
    END IF;
    FOREACH v_event IN ARRAY ARRAY['delete', 'update', 'truncate'] LOOP
        EXECUTE format('CREATE TRIGGER %I AFTER %s ON %s %s FOR EACH STATEMENT '
            'EXECUTE FUNCTION gristmill.subject_trigger(%L, %L)',
            'gristmill_' || p_queue || '_' || v_event, upper(v_event), to_regclass(p_table),
            CASE WHEN v_event = 'truncate' THEN '' ELSE 'REFERENCING OLD TABLE AS gone' END,
            p_queue, p_column);
    END LOOP;
END
$$;
