-- Importing: tasks that stood in another store move in with everything they
-- went through. Rare, so one by one; a queue's counts know it as a put.

-- Imports one task. outcome: 0 imported, 1 imported before (its id then),
-- 2 another task has its key's place, 3 refused (detail says why).
CREATE FUNCTION gristmill.import_one(
    p_queue gristmill.queue, p_mark text, p_failed boolean, p_task gristmill.task,
    p_until timestamptz, p_checkpoint bytea, p_now timestamptz
) RETURNS gristmill.put_answer
LANGUAGE plpgsql AS $$
DECLARE
    v_task    gristmill.task := p_task;
    v_digest  bytea;
    v_known   gristmill.put_id;
    v_waiting gristmill.task;
    v_flight  bigint;
    v_holder  bigint;
    v_fault   text;
BEGIN
    -- The mark is taken first, as a caller's id is: of two imports at once the
    -- unique index lets one through and makes the other wait for its end.
    v_digest := substring(sha256(convert_to((ARRAY['json', 'msgpack', 'raw'])[v_task.encoding + 1],
        'UTF8') || decode('00', 'hex') || v_task.payload) FOR 16);
    INSERT INTO gristmill.put_id AS i (queue, id, task, digest, until)
    VALUES (p_queue.number, p_mark, NULL, v_digest, p_until)
    ON CONFLICT (queue, id) DO UPDATE
       SET task = NULL, digest = excluded.digest, until = excluded.until
     WHERE i.until <= p_now
    RETURNING * INTO v_known;
    IF NOT FOUND THEN
        SELECT * INTO v_known FROM gristmill.put_id i
         WHERE i.queue = p_queue.number AND i.id = p_mark;
        IF v_known.digest = v_digest THEN
            RETURN ROW(1, v_known.task, NULL, NULL, NULL)::gristmill.put_answer;
        END IF;
        RETURN ROW(3, v_known.task, NULL, NULL, 'id_reused')::gristmill.put_answer;
    END IF;
    IF p_queue.bind_table IS NOT NULL THEN
        v_fault := gristmill.subject_fault(p_queue, v_task.key);
        IF v_fault IS NOT NULL THEN
            DELETE FROM gristmill.put_id i WHERE i.queue = p_queue.number AND i.id = p_mark;
            RETURN ROW(3, NULL, NULL, NULL, v_fault)::gristmill.put_answer;
        END IF;
    END IF;
    v_task.id := nextval('gristmill.task_id');
    v_task.queue := p_queue.number;
    v_task.slotted := p_queue.grouped;
    UPDATE gristmill.put_id i SET task = v_task.id
     WHERE i.queue = p_queue.number AND i.id = p_mark;
    IF p_failed THEN
        -- Holds no place: many may stand per key.
        INSERT INTO gristmill.failed (id, created_at, run_at, queue, attempts, claims, expiries,
            started_releases, priority, encoding, slotted, unique_active, key, grp, source,
            headers, settings, payload, prev_run_at, claimed_at, settled, error, history, note,
            note_by, failed_at)
        VALUES (v_task.id, v_task.created_at, v_task.run_at, v_task.queue, v_task.attempts,
            v_task.claims, v_task.expiries, v_task.started_releases, v_task.priority,
            v_task.encoding, v_task.slotted, v_task.unique_active, v_task.key, v_task.grp,
            v_task.source, v_task.headers, v_task.settings, v_task.payload, v_task.prev_run_at,
            v_task.claimed_at, v_task.settled, v_task.error, v_task.history, v_task.note, v_task.note_by,
            v_task.failed_at);
        IF p_checkpoint IS NOT NULL THEN
            INSERT INTO gristmill.checkpoint (id, state) VALUES (v_task.id, p_checkpoint);
        END IF;
        INSERT INTO gristmill.delta (at, queue, failed_now, put)
        VALUES (p_now, p_queue.number, 1, 1);
        RETURN ROW(0, v_task.id, NULL, NULL, NULL)::gristmill.put_answer;
    END IF;
    IF v_task.key IS NOT NULL THEN
        SELECT * INTO v_waiting FROM gristmill.task t
         WHERE t.queue = p_queue.number AND t.key = v_task.key AND NOT t.in_flight;
        SELECT f.id INTO v_flight FROM gristmill.flight f
         WHERE f.queue = p_queue.number AND f.key = v_task.key;
        v_holder := CASE WHEN v_task.unique_active THEN coalesce(v_waiting.id, v_flight)
                         WHEN v_task.in_flight THEN v_flight ELSE v_waiting.id END;
        IF v_holder IS NULL AND v_task.in_flight THEN
            INSERT INTO gristmill.flight (queue, key, id)
            VALUES (p_queue.number, v_task.key, v_task.id)
            ON CONFLICT (queue, key) DO NOTHING;
            IF NOT FOUND THEN
                SELECT f.id INTO v_holder FROM gristmill.flight f
                 WHERE f.queue = p_queue.number AND f.key = v_task.key;
            END IF;
        END IF;
    END IF;
    v_task.blocked := NOT v_task.in_flight AND v_flight IS NOT NULL;
    v_task.delayed := NOT v_task.blocked AND v_task.run_at > p_now;
    IF v_holder IS NULL THEN
        INSERT INTO gristmill.task (id, created_at, run_at, queue, attempts, claims, expiries,
            started_releases, priority, encoding, blocked, in_flight, delayed, slotted,
            unique_active, key, grp, source, headers, settings, payload, prev_run_at, claimed_at,
            settled, error, history, note, note_by)
        VALUES (v_task.id, v_task.created_at, v_task.run_at, v_task.queue, v_task.attempts,
            v_task.claims, v_task.expiries, v_task.started_releases, v_task.priority,
            v_task.encoding, v_task.blocked, v_task.in_flight, v_task.delayed, v_task.slotted,
            v_task.unique_active, v_task.key, v_task.grp, v_task.source, v_task.headers,
            v_task.settings, v_task.payload, v_task.prev_run_at, v_task.claimed_at, v_task.settled, v_task.error,
            v_task.history, v_task.note, v_task.note_by)
        ON CONFLICT (queue, key) WHERE key IS NOT NULL AND NOT in_flight DO NOTHING;
        IF NOT FOUND THEN
            SELECT t.id INTO v_holder FROM gristmill.task t
             WHERE t.queue = p_queue.number AND t.key = v_task.key AND NOT t.in_flight;
        END IF;
    END IF;
    IF v_holder IS NOT NULL THEN
        DELETE FROM gristmill.put_id i WHERE i.queue = p_queue.number AND i.id = p_mark;
        RETURN ROW(2, v_holder, NULL, NULL, NULL)::gristmill.put_answer;
    END IF;
    IF p_checkpoint IS NOT NULL THEN
        INSERT INTO gristmill.checkpoint (id, state) VALUES (v_task.id, p_checkpoint);
    END IF;
    IF v_task.key IS NOT NULL
       AND gristmill.later(least(v_task.created_at, p_now), p_queue.unique_for) > p_now THEN
        -- Its window goes on as if it had been put here.
        INSERT INTO gristmill.key_window AS w (queue, key, task, until)
        VALUES (p_queue.number, v_task.key, v_task.id,
                gristmill.later(least(v_task.created_at, p_now), p_queue.unique_for))
        ON CONFLICT (queue, key) DO UPDATE SET task = excluded.task, until = excluded.until
         WHERE excluded.until >= w.until;
    END IF;
    IF v_task.delayed THEN
        INSERT INTO gristmill.delayed (run_at, id, queue)
        VALUES (v_task.run_at, v_task.id, p_queue.number);
    END IF;
    INSERT INTO gristmill.delta (at, queue, ready, delayed, blocked, put)
    VALUES (p_now, p_queue.number, (NOT v_task.blocked AND NOT v_task.delayed)::integer,
            v_task.delayed::integer, v_task.blocked::integer, 1);
    IF v_task.in_flight AND v_waiting.id IS NOT NULL THEN
        -- The one that waits is behind this one from now on.
        UPDATE gristmill.task t SET blocked = true, delayed = false
         WHERE t.id = v_waiting.id AND NOT t.blocked AND NOT t.in_flight;
        IF FOUND THEN
            PERFORM gristmill.count_out(v_waiting, p_now);
            INSERT INTO gristmill.delta (at, queue, blocked) VALUES (p_now, p_queue.number, 1);
        END IF;
    END IF;
    RETURN ROW(0, v_task.id, NULL, NULL, NULL)::gristmill.put_answer;
END
$$;

-- Imports tasks in order. p_facts holds everything of a task but its payload,
-- as JSON with the names of `task`'s columns. One row a task; no row at all
-- when there is no such queue.
CREATE FUNCTION gristmill.import_many(
    p_queue text, p_marks text[], p_failed boolean[], p_facts text[], p_payloads bytea[],
    p_kept bigint, p_now timestamptz DEFAULT NULL, p_checkpoints bytea[] DEFAULT NULL
) RETURNS TABLE (
    outcome smallint, id bigint, detail text, bind_table text, bind_column text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_now    timestamptz := coalesce(p_now, clock_timestamp());
    v_queue  gristmill.queue;
    v_task   gristmill.task;
    v_answer gristmill.put_answer;
BEGIN
    SELECT * INTO v_queue FROM gristmill.queue q WHERE q.name = p_queue;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOR i IN 1..cardinality(p_marks) LOOP
        v_task := jsonb_populate_record(NULL::gristmill.task, p_facts[i]::jsonb);
        v_task.payload := p_payloads[i];
        v_answer := gristmill.import_one(v_queue, p_marks[i], p_failed[i], v_task,
            gristmill.later(v_now, gristmill.span(p_kept)), p_checkpoints[i], v_now);
        IF v_answer.outcome = 0 AND v_task.settings IS NOT NULL THEN
            PERFORM gristmill.want(v_queue.number, ARRAY[v_answer.id],
                ARRAY[v_task.settings::text], NULL, v_now);
        END IF;
        RETURN QUERY SELECT v_answer.outcome, v_answer.id, v_answer.detail, v_queue.bind_table,
                            v_queue.bind_column;
    END LOOP;
END
$$;
