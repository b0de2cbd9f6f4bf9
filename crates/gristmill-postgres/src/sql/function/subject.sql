-- Bound subjects: the application's rows that a queue's tasks are about.
-- Triggers on the application's table delete the tasks of a deleted subject,
-- whoever deletes it, in the same transaction; a put holds its subject's row.
-- What triggers cannot see, a sweep finds.

-- The triggers of a bound queue, by table and name, with the statements that make
-- them. The schema stands in the name, because two of them may be bound to one
-- table.
--
-- A statement's rows come together, so that a thousand deleted rows are one look.
-- A statement that names a partition fires nothing of the table above it, so each
-- partition has the same triggers. One that is made later lacks them until the
-- sweep has seen it; till then its rows are told one by one, by a trigger that
-- partitions inherit. `at` switches that off for a statement that is told whole.
CREATE FUNCTION gristmill.subject_triggers(p_queue integer, p_place oid)
RETURNS TABLE (place oid, name text, statement text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    c_schema constant text := rtrim('gristmill.', '.');
    c_whole  constant text := 'REFERENCING OLD TABLE AS gone FOR EACH STATEMENT';
    v_prefix text := 'gristmill_' || CASE WHEN length(c_schema) <= 26 THEN c_schema
                                          ELSE left(md5(c_schema), 16) END || '_' || p_queue || '_';
BEGIN
    RETURN QUERY
    SELECT c.oid, v_prefix || w.word,
           format('CREATE TRIGGER %I %s ON %I.%I %s EXECUTE FUNCTION %s(%L)', v_prefix || w.word,
                  w.event, n.nspname, c.relname, w.rest, w.does, p_queue)
      -- A table without partitions has no tree of them.
      FROM (SELECT p_place AS place
            UNION SELECT t.relid FROM pg_catalog.pg_partition_tree(p_place) t) AS h
      JOIN pg_catalog.pg_class c ON c.oid = h.place AND c.relkind IN ('r', 'p')
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_catalog.pg_class root ON root.oid = p_place
     CROSS JOIN LATERAL (VALUES
          ('delete', 'AFTER DELETE', c_whole, 'gristmill.subject_trigger', true),
          ('update', 'AFTER UPDATE', c_whole, 'gristmill.subject_trigger', true),
          ('truncate', 'AFTER TRUNCATE', 'FOR EACH STATEMENT', 'gristmill.subject_trigger', true),
          ('at', 'BEFORE DELETE OR UPDATE', 'FOR EACH STATEMENT', 'gristmill.subject_row',
           root.relkind = 'p'),
          ('row', 'AFTER DELETE OR UPDATE',
           format('FOR EACH ROW WHEN (current_setting(%L, true) IS DISTINCT FROM'
                  ' pg_trigger_depth()::text)', 'gristmill.told_' || p_queue),
           'gristmill.subject_row', root.relkind = 'p' AND c.oid = p_place)
      ) AS w (word, event, rest, does, wanted)
     WHERE w.wanted;
END
$$;

-- Those of them that are not there, or switched off.
CREATE FUNCTION gristmill.triggers_missing(p_queue integer, p_place oid)
RETURNS TABLE (place oid, name text, statement text, stands boolean)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT w.place, w.name, w.statement, t.oid IS NOT NULL
      FROM gristmill.subject_triggers(p_queue, p_place) w
      LEFT JOIN pg_catalog.pg_trigger t ON t.tgrelid = w.place AND t.tgname = w.name
     WHERE t.oid IS NULL OR t.tgenabled NOT IN ('O', 'A');
END
$$;

-- Where a queue's subjects are now, and how statements speak of them:
--   place     the table; whole_name as statements name it
--   col       the column; number its number there
--   cast_to   its type, below any domain; same: the schema of the type's `=`
--   plain     a pattern of keys that certainly are values of that type
--   spelling  the column's text, of a row called s
--   hold      the lock that keeps the row's key as it is
--   indexed   whether a row can be found by it without reading all
--   fault     why it cannot be told: a sentence, or subject_table_gone
-- Types are the server's own, those of extensions, enumerations without casts of
-- their own, and domains over these, without the checks of the domain: the deleter's
-- trigger runs with the rights of this schema's owner, and must not run a function of
-- somebody else's with them.
CREATE FUNCTION gristmill.subject_place(
    p_queue integer, OUT place oid, OUT number smallint, OUT whole_name text, OUT col text,
    OUT cast_to text, OUT plain text, OUT same text, OUT spelling text, OUT hold text,
    OUT indexed boolean, OUT fault text
)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_bound gristmill.bound;
    v_is    record;
BEGIN
    SELECT * INTO v_bound FROM gristmill.bound b WHERE b.queue = p_queue;
    place := v_bound.place;
    number := v_bound.attnum;
    IF NOT gristmill.is_triggered(p_queue, place) THEN
        -- Restored from a dump, or made again.
        place := to_regclass(v_bound.table_name);
        IF place IS NULL THEN
            fault := 'subject_table_gone';
            RETURN;
        ELSIF NOT gristmill.is_triggered(p_queue, place) THEN
            fault := format('table %s has lost its triggers: declare the queue again',
                            v_bound.table_name);
            RETURN;
        END IF;
        number := (SELECT a.attnum FROM pg_attribute a
                    WHERE a.attrelid = place AND a.attname = v_bound.column_name
                      AND NOT a.attisdropped);
    END IF;
    whole_name := place::regclass;
    -- One statement, because every put asks.
    SELECT a.attname, format_type(coalesce(b.oid, t.oid), -1) AS cast_to,
           coalesce(b.oid, t.oid) AS type,
           coalesce(b.typtype, t.typtype) = 'e' AS is_enum,
           coalesce(b.typnamespace, t.typnamespace)::regnamespace::text AS schema,
           i.is_key, i.is_first
      INTO v_is
      FROM pg_attribute a
      JOIN pg_type t ON t.oid = a.atttypid
      LEFT JOIN pg_type b ON b.oid = t.typbasetype AND t.typbasetype <> 0
     CROSS JOIN LATERAL (
           SELECT coalesce(bool_or(x.indisunique AND x.indimmediate AND x.indpred IS NULL
                      AND x.indexprs IS NULL AND a.attnum
                          = ANY ((x.indkey::smallint[])[0:x.indnkeyatts - 1])), false) AS is_key,
                  coalesce(bool_or(x.indkey[0] = a.attnum AND x.indpred IS NULL
                      AND x.indisvalid), false) AS is_first
             FROM pg_index x WHERE x.indrelid = a.attrelid) i
     WHERE a.attrelid = place AND a.attnum = number AND NOT a.attisdropped;
    IF NOT FOUND THEN
        fault := format('table %s has no column %s any more', whole_name, v_bound.column_name);
        RETURN;
    END IF;
    col := v_is.attname;
    cast_to := v_is.cast_to;
    plain := CASE cast_to
        WHEN 'integer' THEN '^(0|-?[1-9][0-9]{0,8})$'
        WHEN 'bigint' THEN '^(0|-?[1-9][0-9]{0,17})$'
        WHEN 'uuid' THEN '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
        WHEN 'text' THEN '' WHEN 'character varying' THEN '' END;
    IF (CASE WHEN v_is.schema = 'pg_catalog' THEN false
             WHEN v_is.is_enum THEN EXISTS (SELECT 1 FROM pg_cast c
                                             WHERE v_is.type IN (c.castsource, c.casttarget))
             ELSE NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_type'::regclass
                                 AND d.objid = v_is.type AND d.deptype = 'e') END) THEN
        fault := format('column %s of table %s has the type %s, which no key can be compared with',
                        col, whole_name, cast_to);
        RETURN;
    END IF;
    spelling := format('s.%I::text', col);
    same := CASE WHEN v_is.is_enum THEN 'pg_catalog' ELSE v_is.schema END;
    -- Who updates a column that is in no unique index does not mind a key share.
    hold := CASE WHEN v_is.is_key THEN 'KEY SHARE' ELSE 'SHARE' END;
    indexed := v_is.is_first;
END
$$;

-- Whether the triggers of this schema's queue stand on a table.
CREATE FUNCTION gristmill.is_triggered(p_queue integer, p_place oid) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM pg_catalog.pg_trigger t
         WHERE t.tgrelid = p_place AND t.tgparentid = 0
           AND t.tgfoid = 'gristmill.subject_trigger()'::pg_catalog.regprocedure
           AND split_part(encode(t.tgargs, 'escape'), E'\\000', 1) = p_queue::text);
END
$$;

-- Why a task cannot be put on a bound queue, or null. Holds the subject's row
-- until the caller's transaction ends, as a foreign key would. A key is the
-- column's own spelling: another one ('007', a uuid in capitals) would not be
-- found when the subject goes. Texts of dates and the like do not depend on the
-- session.
CREATE FUNCTION gristmill.subject_fault(p_queue gristmill.queue, p_key text) RETURNS text
LANGUAGE plpgsql
SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC'
SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $$
DECLARE
    v_at       record;
    v_found    boolean;
    v_spelling text;
BEGIN
    IF p_key IS NULL THEN
        RETURN format('invalid:the queue is bound to %s.%s: a task needs a key that names its row',
            p_queue.bind_table, p_queue.bind_column);
    END IF;
    SELECT * INTO v_at FROM gristmill.subject_place(p_queue.number);
    IF v_at.fault = 'subject_table_gone' THEN
        RETURN v_at.fault;
    ELSIF v_at.fault IS NOT NULL THEN
        RETURN 'invalid:the queue is bound, but ' || v_at.fault;
    END IF;
    IF p_key ~ v_at.plain IS NOT TRUE THEN
        -- By itself: a row locked within would cost a subtransaction a task.
        BEGIN
            EXECUTE format('SELECT $1::%s IS NULL', v_at.cast_to) USING p_key;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
            RETURN 'no_such_subject';
        END;
    END IF;
    -- The key is cast to the column's type, not the column to text, so that the
    -- column's index is used.
    EXECUTE format('SELECT true FROM %s s WHERE s.%I OPERATOR(%s.=) $1::%s'
        ' AND (%s) COLLATE "C" = $1 LIMIT 1 FOR %s OF s',
        v_at.whole_name, v_at.col, v_at.same, v_at.cast_to, v_at.spelling, v_at.hold)
        INTO v_found USING p_key;
    IF v_found THEN
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT %s FROM %s s WHERE s.%I OPERATOR(%s.=) $1::%s LIMIT 1',
        v_at.spelling, v_at.whole_name, v_at.col, v_at.same, v_at.cast_to)
        INTO v_spelling USING p_key;
    RETURN 'no_such_subject' || coalesce(
        ': the column''s spelling of this key is ''' || v_spelling || '''', '');
END
$$;

-- The same for many at once, in one statement: one answer a key, in their order.
-- Rows are held in the order of keys, so that two puts wait in one direction.
-- Whatever is not as usual is asked for by itself.
CREATE FUNCTION gristmill.subject_faults(p_queue gristmill.queue, p_keys text[]) RETURNS text[]
LANGUAGE plpgsql
SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC'
SET extra_float_digits = 1 SET bytea_output = 'hex'
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_at     record;
    v_faults text[];
    v_fault  text;
BEGIN
    SELECT * INTO v_at FROM gristmill.subject_place(p_queue.number);
    IF v_at.fault IS NULL AND v_at.plain IS NOT NULL THEN
        EXECUTE format('SELECT array_agg(CASE WHEN h.held THEN NULL ELSE ''?'' END ORDER BY h.position)'
            '  FROM (SELECT k.position, (SELECT true FROM %s s'
            '                 WHERE s.%I OPERATOR(%s.=) k.key::%s AND (%s) COLLATE "C" = k.key'
            '                 LIMIT 1 FOR %s OF s) AS held'
            '          FROM (SELECT u.position, CASE WHEN u.key ~ $2 THEN u.key END AS key'
            '                  FROM unnest($1) WITH ORDINALITY AS u (key, position)'
            '                 ORDER BY u.key COLLATE "C") k OFFSET 0) h',
            v_at.whole_name, v_at.col, v_at.same, v_at.cast_to, v_at.spelling, v_at.hold)
            INTO v_faults USING p_keys, v_at.plain;
    ELSE
        v_faults := array_fill('?'::text, ARRAY[cardinality(p_keys)]);
    END IF;
    FOR i IN 1..cardinality(p_keys) LOOP
        IF v_faults[i] IS NOT NULL THEN
            v_fault := gristmill.subject_fault(p_queue, p_keys[i]);
            v_faults[i] := v_fault;
        END IF;
    END LOOP;
    RETURN v_faults;
END
$$;

-- Deletes every task of these keys, in every state; tells how many. A processing
-- one's worker is told at its next heartbeat.
--
-- Tasks move while this goes on: a claim takes one out of `task`, a settlement
-- brings it back, an operator retries a failed one. But whoever moves a task holds
-- the row it comes from, and until the commit that row is seen here. So: look at
-- everything at once (one statement, one snapshot); take what is seen, waiting
-- for whoever holds it; look again, until nothing is seen. Nothing new can come:
-- a put would have to hold the subject's row, which the deleter has.
--
-- The order is that of settlements, which hold a lease when they free a key and
-- un-block the task behind it: leases by token, what is in flight, what waits,
-- what failed. Claims wait for no task at all. A lease that shows up at a later look
-- may be out of that order, so nobody waits for it who holds others: everything is
-- given back and begun again.
CREATE FUNCTION gristmill.subjects_gone(p_queue integer, p_keys text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_keys text[] := p_keys;
    v_gone bigint := 0;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM gristmill.see_all(p_queue, p_keys);
    ELSE
        -- Most rows have no task; those need no subtransaction.
        v_keys := gristmill.keys_standing(p_queue, p_keys);
    END IF;
    WHILE v_keys <> '{}' LOOP
        BEGIN
            v_gone := gristmill.take_subjects(p_queue, v_keys);
            EXIT;
        EXCEPTION WHEN SQLSTATE 'GM002' THEN
            NULL;
        END;
    END LOOP;
    -- Last: whoever fails a task holds its lease and would wait for this.
    PERFORM gristmill.take_markers(p_queue, p_keys, false);
    DELETE FROM gristmill.subject_failed f WHERE f.key = ANY (p_keys) AND f.queue = p_queue;
    -- What is put when the subject is there again is about another one.
    IF (SELECT q.unique_for FROM gristmill.queue q WHERE q.number = p_queue) IS NOT NULL THEN
        DELETE FROM gristmill.key_window w
         WHERE w.ctid = ANY (ARRAY(SELECT x.ctid FROM gristmill.key_window x
                                    WHERE x.queue = p_queue AND x.key = ANY (p_keys)
                                      FOR UPDATE SKIP LOCKED));
    END IF;
    RETURN v_gone;
END
$$;

-- One try of it. GM002: a lease came up late, and somebody holds it.
CREATE FUNCTION gristmill.take_subjects(p_queue integer, p_keys text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_now     timestamptz := clock_timestamp();
    v_keys    text[] := p_keys;
    v_flown   text[];
    v_ids     bigint[];
    v_tokens  uuid[];
    v_free    uuid[];
    v_cut     bigint[];
    v_gone    bigint[];
    v_missed  bigint[];
    v_waiting bigint[];
    v_failed  integer;
    v_done    integer;
    v_all     bigint := 0;
    v_held    boolean := false;
BEGIN
    LOOP
        v_keys := gristmill.keys_standing(p_queue, v_keys);
        EXIT WHEN v_keys = '{}';
        SELECT coalesce(array_agg(f.key), '{}'), coalesce(array_agg(f.id), '{}')
          INTO v_flown, v_ids
          FROM gristmill.flight f WHERE f.key = ANY (v_keys) AND f.queue = p_queue;
        v_cut := '{}';
        IF v_ids <> '{}' THEN
            v_tokens := ARRAY(
                SELECT l.token FROM gristmill.lease l
                 WHERE l.queue = p_queue
                   AND CASE WHEN cardinality(v_ids) <= 64 THEN l.open && v_ids
                            -- Two long lists side by side, not each by each.
                            ELSE EXISTS (SELECT unnest(l.open) INTERSECT SELECT unnest(v_ids)) END);
            IF v_held THEN
                v_free := ARRAY(SELECT l.token FROM gristmill.lease l
                                 WHERE l.token = ANY (v_tokens) FOR UPDATE SKIP LOCKED);
                IF EXISTS (SELECT 1 FROM gristmill.lease l
                            WHERE l.token = ANY (v_tokens) AND l.token <> ALL (v_free)) THEN
                    RAISE EXCEPTION USING ERRCODE = 'GM002';
                END IF;
            ELSE
                PERFORM 1 FROM gristmill.lease l
                  WHERE l.token = ANY (v_tokens) ORDER BY l.token FOR UPDATE;
            END IF;
            v_held := v_held OR v_tokens <> '{}';
            WITH cut AS (
                UPDATE gristmill.lease l
                   SET open = ARRAY(SELECT unnest(l.open) EXCEPT SELECT unnest(v_ids) ORDER BY 1),
                       lost = l.lost || ARRAY(SELECT unnest(l.open) INTERSECT SELECT unnest(v_ids))
                 WHERE l.token = ANY (v_tokens)
                RETURNING ARRAY(SELECT unnest(l.lost) INTERSECT SELECT unnest(v_ids)) AS ids
            )
            SELECT coalesce(array_agg(i.id), '{}') INTO v_cut
              FROM cut c CROSS JOIN LATERAL unnest(c.ids) AS i (id);
            v_tokens := ARRAY(SELECT l.token FROM gristmill.lease l
                               WHERE l.token = ANY (v_tokens) AND l.open = '{}');
            DELETE FROM gristmill.lease l WHERE l.token = ANY (v_tokens);
            PERFORM gristmill.end_deadlines(v_tokens);
            v_gone := gristmill.take_out(p_queue, v_ids, v_now) || v_cut;
            PERFORM gristmill.forget_kept(v_gone);
            -- A key is freed with its task, and only so: else two of one key
            -- would run.
            v_missed := ARRAY(SELECT unnest(v_ids) EXCEPT SELECT unnest(v_gone));
            IF v_missed <> '{}' THEN
                v_flown := ARRAY(SELECT f.key FROM unnest(v_flown, v_ids) AS f (key, id)
                                  WHERE f.id <> ALL (v_missed));
                -- A key that is in flight with no task at all, in one snapshot, is
                -- damage. It would be looked for without end.
                DELETE FROM gristmill.flight f
                 WHERE f.key = ANY (v_keys) AND f.queue = p_queue AND f.id = ANY (v_missed)
                   AND (SELECT t.id FROM gristmill.task t WHERE t.id = f.id) IS NULL
                   AND (SELECT l.token FROM gristmill.lease l
                         WHERE l.queue = p_queue AND f.id = ANY (l.open) LIMIT 1) IS NULL;
            END IF;
            DELETE FROM gristmill.flight f WHERE f.key = ANY (v_flown) AND f.queue = p_queue;
            INSERT INTO gristmill.delta (at, queue, processing)
            SELECT v_now, p_queue, -cardinality(v_cut) WHERE v_cut <> '{}';
            v_all := v_all + cardinality(v_gone);
            -- Its task moved on meanwhile: first what is in flight, then the rest.
            CONTINUE WHEN v_missed <> '{}';
        END IF;
        v_waiting := ARRAY(SELECT t.id FROM gristmill.task t
                            WHERE t.key = ANY (v_keys) AND t.queue = p_queue AND NOT t.in_flight
                            ORDER BY t.key FOR UPDATE);
        v_waiting := gristmill.take_out(p_queue, v_waiting, v_now);
        v_ids := ARRAY(SELECT x.id FROM unnest(v_keys) AS k (key)
                        CROSS JOIN LATERAL (SELECT f.id FROM gristmill.failed f
                                             WHERE f.queue = p_queue AND f.key = k.key OFFSET 0) x);
        PERFORM gristmill.forget_kept(v_waiting || v_ids);
        DELETE FROM gristmill.failed t WHERE t.id = ANY (v_ids);
        GET DIAGNOSTICS v_failed = ROW_COUNT;
        DELETE FROM gristmill.done t
         WHERE t.id = ANY (ARRAY(
                   SELECT x.id FROM unnest(v_keys) AS k (key)
                    CROSS JOIN LATERAL (SELECT d.id FROM gristmill.done d
                                         WHERE d.queue = p_queue AND d.key = k.key OFFSET 0) x));
        GET DIAGNOSTICS v_done = ROW_COUNT;
        v_all := v_all + cardinality(v_waiting) + v_failed;
        -- A kept task was counted when it was done.
        INSERT INTO gristmill.delta (at, queue, failed_now, done_kept)
        SELECT v_now, p_queue, -v_failed, -v_done WHERE v_failed + v_done > 0;
    END LOOP;
    INSERT INTO gristmill.delta (at, queue, subject_gone)
    SELECT v_now, p_queue, v_all WHERE v_all > 0;
    RETURN v_all;
END
$$;

-- Those of the keys that some task has, wherever it stands, in one snapshot. By
-- value, key by key: no plan for it reads more than these keys.
CREATE FUNCTION gristmill.keys_standing(p_queue integer, p_keys text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT k.key FROM unnest(p_keys) AS k (key)
         WHERE (SELECT f.id FROM gristmill.flight f
                 WHERE f.key = k.key AND f.queue = p_queue) IS NOT NULL
            OR (SELECT t.id FROM gristmill.task t
                 WHERE t.key = k.key AND t.queue = p_queue AND NOT t.in_flight) IS NOT NULL
            OR (SELECT t.id FROM gristmill.failed t
                 WHERE t.queue = p_queue AND t.key = k.key LIMIT 1) IS NOT NULL
            OR (SELECT t.id FROM gristmill.done t
                 WHERE t.queue = p_queue AND t.key = k.key LIMIT 1) IS NOT NULL);
END
$$;

-- Deletes pending tasks by their ids and takes them out of the counts; tells
-- which of them stood.
CREATE FUNCTION gristmill.take_out(p_queue integer, p_ids bigint[], p_now timestamptz)
RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_gone bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM gristmill.task t WHERE t.id = ANY (p_ids)
        RETURNING t.id, t.run_at, t.blocked, t.delayed
    ), late AS (
        DELETE FROM gristmill.delayed d
         WHERE d.ctid = ANY (ARRAY(
                   SELECT (SELECT x.ctid FROM gristmill.delayed x
                            WHERE x.run_at = g.run_at AND x.id = g.id)
                     FROM gone g WHERE g.delayed))
        RETURNING d.id
    ), counted AS (
        INSERT INTO gristmill.delta (at, queue, ready, delayed, blocked)
        SELECT p_now, p_queue, l.late - count(*) FILTER (WHERE NOT g.blocked), -l.late,
               -count(*) FILTER (WHERE g.blocked)
          FROM gone g, (SELECT count(*) AS late FROM late) l
         GROUP BY l.late
    )
    SELECT coalesce(array_agg(g.id), '{}') INTO v_gone FROM gone g;
    RETURN v_gone;
END
$$;

-- Under REPEATABLE READ a look is as old as the transaction: a task that was put
-- or claimed since is not seen, and would stand without its subject. A unique index
-- sees everything: an insert that meets a row of which the transaction does not
-- know fails with a serialization failure, as a foreign key's check would.
CREATE FUNCTION gristmill.see_all(p_queue integer, p_keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO gristmill.flight (queue, key, id)
    SELECT p_queue, k.key, 0 FROM unnest(p_keys) AS k (key) ORDER BY k.key
    ON CONFLICT (key, queue) DO NOTHING;
    DELETE FROM gristmill.flight f
     WHERE f.key = ANY (p_keys) AND f.queue = p_queue AND f.id = 0;
    INSERT INTO gristmill.task (id, queue, key, run_at, created_at, blocked, payload)
    SELECT -nextval('gristmill.task_id'), p_queue, k.key, now(), now(), true, ''
      FROM unnest(p_keys) AS k (key) ORDER BY k.key
    ON CONFLICT (key, queue) WHERE key IS NOT NULL AND NOT in_flight DO NOTHING;
    DELETE FROM gristmill.task t
     WHERE t.key = ANY (p_keys) AND t.queue = p_queue AND NOT t.in_flight AND t.id < 0;
    INSERT INTO gristmill.subject_failed (queue, key, times)
    SELECT p_queue, k.key, 0 FROM unnest(p_keys) AS k (key) ORDER BY k.key
    ON CONFLICT (key, queue) DO NOTHING;
END
$$;

-- Notes that a task of a bound queue has failed (table `subject_failed`).
CREATE FUNCTION gristmill.note_failed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO gristmill.subject_failed AS f (queue, key, times)
    SELECT b.queue, NEW.key, 1 FROM gristmill.bound b WHERE b.queue = NEW.queue
    ON CONFLICT (key, queue) DO UPDATE SET times = f.times + 1;
    RETURN NULL;
END
$$;
CREATE TRIGGER note_failed AFTER INSERT ON gristmill.failed
    FOR EACH ROW WHEN (NEW.key IS NOT NULL) EXECUTE FUNCTION gristmill.note_failed();

-- Every key of a queue that some task has, wherever it stands, or whose window is open.
CREATE FUNCTION gristmill.keys_of(p_queue integer) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(SELECT t.key FROM gristmill.task t WHERE t.queue = p_queue AND t.key IS NOT NULL
                 UNION SELECT f.key FROM gristmill.flight f WHERE f.queue = p_queue
                 UNION SELECT t.key FROM gristmill.failed t
                        WHERE t.queue = p_queue AND t.key IS NOT NULL
                 UNION SELECT t.key FROM gristmill.done t
                        WHERE t.queue = p_queue AND t.key IS NOT NULL
                 UNION SELECT w.key FROM gristmill.key_window w WHERE w.queue = p_queue);
END
$$;

-- Those of the keys that no row has. Row security must not hide rows, or their
-- tasks would go: it is an error instead.
CREATE FUNCTION gristmill.without_subject(p_queue integer, p_keys text[]) RETURNS text[]
LANGUAGE plpgsql STABLE
SET row_security = off
AS $$
DECLARE
    v_at   record;
    v_keys text[];
BEGIN
    SELECT * INTO v_at FROM gristmill.subject_place(p_queue);
    IF v_at.fault IS NOT NULL THEN
        RETURN '{}';
    END IF;
    EXECUTE format('SELECT array_agg(k.key) FROM unnest($1) AS k (key)'
        ' WHERE (SELECT true FROM %s s WHERE s.%I OPERATOR(%s.=) k.key::%s'
        '          AND (%s) COLLATE "C" = k.key LIMIT 1) IS NULL',
        v_at.whole_name, v_at.col, v_at.same, v_at.cast_to, v_at.spelling)
        INTO v_keys USING p_keys;
    RETURN coalesce(v_keys, '{}');
END
$$;

-- The triggers' function; its argument is the queue's number. It runs with the
-- rights of this schema's owner: who may delete a row needs no right on the queue.
-- Whatever became of the binding, the application's own statement goes on.
CREATE FUNCTION gristmill.subject_trigger() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC'
SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $$
DECLARE
    v_queue integer := TG_ARGV[0]::integer;
    v_at    record;
    v_keys  text[];
BEGIN
    SELECT * INTO v_at FROM gristmill.subject_place(v_queue);
    IF v_at.fault IS NOT NULL OR NOT gristmill.may_read(v_at.place)
       OR (v_at.place <> TG_RELID
           AND v_at.place NOT IN (SELECT a.relid FROM pg_partition_ancestors(TG_RELID) a)) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'TRUNCATE' THEN
        v_keys := gristmill.without_subject(v_queue, gristmill.keys_of(v_queue));
    ELSE
        -- A key that still stands (the column was set to its old value, or
        -- another row has it) keeps its tasks.
        EXECUTE format('SELECT array_agg(DISTINCT (%1$s) COLLATE "C") FROM gone s'
            ' WHERE s.%2$I IS NOT NULL'
            ' AND (SELECT true FROM %3$s o WHERE o.%2$I OPERATOR(%4$s.=) s.%2$I LIMIT 1) IS NULL',
            v_at.spelling, v_at.col, v_at.whole_name, v_at.same) INTO v_keys;
    END IF;
    IF v_keys <> '{}' THEN
        PERFORM gristmill.subjects_gone(v_queue, v_keys);
    END IF;
    IF current_setting('gristmill.told_' || v_queue, true) <> '' THEN
        PERFORM set_config('gristmill.told_' || v_queue, '', true);
    END IF;
    RETURN NULL;
END
$$;

-- The same for the rows of a partition, one by one, unless their statement will
-- be told as a whole. It says so before it begins: at which depth it runs tells it
-- from a statement that another trigger runs meanwhile.
CREATE FUNCTION gristmill.subject_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_LEVEL = 'STATEMENT' THEN
        PERFORM set_config('gristmill.told_' || TG_ARGV[0], (pg_trigger_depth() - 1)::text, true);
    ELSE
        PERFORM gristmill.subject_row_gone(TG_ARGV[0]::integer, TG_RELID, OLD);
    END IF;
    RETURN NULL;
END
$$;

-- One row of a partition went, or is another one now.
CREATE FUNCTION gristmill.subject_row_gone(p_queue integer, p_place oid, p_row record)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC'
SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $$
DECLARE
    v_at  record;
    v_key text;
BEGIN
    SELECT * INTO v_at FROM gristmill.subject_place(p_queue);
    IF v_at.fault IS NOT NULL OR NOT gristmill.may_read(v_at.place)
       OR v_at.place NOT IN (SELECT a.relid FROM pg_partition_ancestors(p_place) a) THEN
        RETURN;
    END IF;
    EXECUTE format('SELECT %s FROM (SELECT ($1).%I) s', v_at.spelling, v_at.col)
        INTO v_key USING p_row;
    -- Most rows have no task; to ask whether another row has the key costs more.
    IF v_key IS NOT NULL AND (gristmill.keys_standing(p_queue, ARRAY[v_key]) <> '{}'
       OR EXISTS (SELECT 1 FROM gristmill.key_window w
                   WHERE w.queue = p_queue AND w.key = v_key)
       OR current_setting('transaction_isolation') <> 'read committed') THEN
        PERFORM gristmill.subjects_gone(p_queue,
            gristmill.without_subject(p_queue, ARRAY[v_key]));
    END IF;
END
$$;

-- Whether the triggers see every row of a table. They ask it for rows that have
-- the same key, with the rights of their owner: what row security hid from them
-- would seem to be gone.
CREATE FUNCTION gristmill.may_read(p_place oid) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT pg_catalog.has_table_privilege(f.proowner, p_place, 'SELECT')
                   AND (NOT c.relrowsecurity OR r.rolsuper OR r.rolbypassrls
                        OR (NOT c.relforcerowsecurity
                            AND pg_catalog.pg_has_role(f.proowner, c.relowner, 'USAGE')))
              FROM pg_catalog.pg_class c
              JOIN pg_catalog.pg_proc f
                ON f.oid = 'gristmill.subject_trigger()'::pg_catalog.regprocedure
              JOIN pg_catalog.pg_roles r ON r.oid = f.proowner
             WHERE c.oid = p_place);
END
$$;

-- Makes the triggers of a queue say what its settings say. Null unbinds. Only who
-- owns a table binds a queue to it: puts hold its rows, and its triggers cost.
--   p_again  the settings are as they were; then what is whole stays as it is,
--            whichever table of that name this session would find
--   p_place  the table, where the caller's search_path is not in force here
CREATE FUNCTION gristmill.bind_subject(
    p_queue integer, p_table text, p_column text, p_again boolean DEFAULT false,
    p_place oid DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_name   text := (SELECT q.name FROM gristmill.queue q WHERE q.number = p_queue);
    v_place  oid;
    v_attnum smallint;
    v_owner  oid;
    v_fault  text;
    v_one    record;
BEGIN
    IF p_again THEN
        SELECT * INTO v_one FROM gristmill.subject_place(p_queue);
        IF v_one.fault IS NULL THEN
            PERFORM gristmill.make_triggers(p_queue, v_one.place);
            RETURN;
        END IF;
    END IF;
    IF p_table IS NOT NULL THEN
        BEGIN
            v_place := coalesce(p_place, to_regclass(p_table));
        EXCEPTION WHEN syntax_error OR invalid_name THEN
            NULL; -- no name at all
        END;
        SELECT a.attnum INTO v_attnum FROM pg_catalog.pg_attribute a
         WHERE a.attrelid = v_place AND a.attname = p_column AND a.attnum > 0
           AND NOT a.attisdropped;
        v_fault := CASE
            WHEN v_place IS NULL THEN format('there is no table ''%s'' in this database', p_table)
            WHEN v_attnum IS NULL THEN format('table ''%s'' has no column ''%s''', p_table, p_column)
            WHEN (SELECT c.relkind NOT IN ('r', 'p') FROM pg_catalog.pg_class c
                   WHERE c.oid = v_place) THEN format('''%s'' is not a table', p_table) END;
        IF v_fault IS NOT NULL THEN
            RAISE EXCEPTION 'queue ''%'': bind: %', v_name, v_fault USING ERRCODE = 'GM400';
        END IF;
        IF NOT p_again AND NOT (SELECT pg_catalog.pg_has_role(session_user, c.relowner, 'USAGE')
                                  FROM pg_catalog.pg_class c WHERE c.oid = v_place) THEN
            RAISE EXCEPTION 'queue ''%'': bind: only who owns table ''%'' binds a queue to it',
                v_name, p_table USING ERRCODE = 'insufficient_privilege';
        END IF;
        IF NOT gristmill.may_read(v_place) THEN
            v_owner := (SELECT p.proowner FROM pg_catalog.pg_proc p
                         WHERE p.oid = 'gristmill.subject_trigger()'::pg_catalog.regprocedure);
            RAISE EXCEPTION 'queue ''%'': bind: role %, which owns the queues, may not read every row of table ''%''',
                v_name, v_owner::pg_catalog.regrole, p_table
                USING ERRCODE = 'insufficient_privilege',
                      HINT = format('GRANT SELECT ON %s TO %s', v_place::pg_catalog.regclass,
                                    v_owner::pg_catalog.regrole);
        END IF;
    END IF;
    FOR v_one IN
        SELECT t.tgname, t.tgrelid::pg_catalog.regclass AS place FROM pg_catalog.pg_trigger t
         WHERE t.tgparentid = 0
           AND t.tgfoid IN ('gristmill.subject_trigger()'::pg_catalog.regprocedure,
                            'gristmill.subject_row()'::pg_catalog.regprocedure)
           AND split_part(encode(t.tgargs, 'escape'), E'\\000', 1) = p_queue::text
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', v_one.tgname, v_one.place);
    END LOOP;
    DELETE FROM gristmill.bound b WHERE b.queue = p_queue;
    IF p_table IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO gristmill.bound (queue, place, attnum, table_name, column_name, after)
    SELECT p_queue, v_place, v_attnum, format('%I.%I', n.nspname, c.relname), p_column,
           (SELECT s.last_value - (NOT s.is_called)::integer FROM gristmill.task_id s)
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.oid = v_place;
    PERFORM gristmill.make_triggers(p_queue, v_place);
    v_fault := (SELECT p.fault FROM gristmill.subject_place(p_queue) p);
    IF v_fault IS NOT NULL THEN
        RAISE EXCEPTION 'queue ''%'': bind: %', v_name, v_fault USING ERRCODE = 'GM400';
    END IF;
END
$$;

-- Makes those triggers that are not there.
CREATE FUNCTION gristmill.make_triggers(p_queue integer, p_place oid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_make text;
BEGIN
    FOR v_make IN SELECT m.statement FROM gristmill.triggers_missing(p_queue, p_place) m
                   WHERE NOT m.stands LOOP
        EXECUTE v_make;
    END LOOP;
END
$$;

-- Brings what is known of a binding up to date: names after a rename, numbers
-- after a restore, triggers of a table that was made again or of a new partition. Needs the rights of
-- who binds; without them, or when the table is busy, it stays as it is, and puts
-- and `doctor` say so.
CREATE FUNCTION gristmill.keep_bound(p_queue integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_bound gristmill.bound;
    v_at    record;
    v_set   text := current_setting('lock_timeout');
BEGIN
    SELECT * INTO v_bound FROM gristmill.bound b WHERE b.queue = p_queue;
    SELECT * INTO v_at FROM gristmill.subject_place(p_queue);
    IF v_at.fault IS NULL THEN
        UPDATE gristmill.bound b
           SET place = v_at.place, attnum = v_at.number, table_name = v_at.whole_name,
               column_name = v_at.col
         WHERE b.queue = p_queue
           AND (b.place, b.attnum, b.table_name, b.column_name)
               IS DISTINCT FROM (v_at.place, v_at.number, v_at.whole_name, v_at.col);
    END IF;
    -- Asked first: who tries in vain still stops every writer for a moment.
    IF (SELECT bool_and(has_table_privilege(m.place, 'TRIGGER'))
          FROM gristmill.triggers_missing(p_queue, v_at.place) m WHERE NOT m.stands) THEN
        BEGIN
            PERFORM set_config('lock_timeout', '20', true);
            PERFORM gristmill.bind_subject(p_queue, v_bound.table_name, v_bound.column_name, true);
        EXCEPTION WHEN insufficient_privilege OR lock_not_available OR SQLSTATE 'GM400' THEN
            NULL;
        END;
        PERFORM set_config('lock_timeout', v_set, true);
    END IF;
END
$$;

-- Removes the tasks of those keys that have no subject; tells how many. What
-- cannot be read (no right, no index, another type by now) is left alone.
CREATE FUNCTION gristmill.remove_orphans(p_queue integer, p_keys text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_keys text[];
BEGIN
    IF (SELECT p.indexed FROM gristmill.subject_place(p_queue) p) THEN
        BEGIN
            v_keys := gristmill.without_subject(p_queue, p_keys);
            IF v_keys <> '{}' THEN
                -- Looked for again while the tasks are held: a subject that was
                -- made anew meanwhile, and a put that met the task, count.
                PERFORM 1 FROM gristmill.task t
                  WHERE t.key = ANY (v_keys) AND t.queue = p_queue AND NOT t.in_flight
                  ORDER BY t.key FOR UPDATE;
                v_keys := gristmill.without_subject(p_queue, v_keys);
            END IF;
        EXCEPTION WHEN insufficient_privilege OR data_exception OR undefined_function
                    OR undefined_table OR undefined_column OR integrity_constraint_violation THEN
            RETURN 0;
        END;
    END IF;
    RETURN CASE WHEN v_keys <> '{}' THEN gristmill.subjects_gone(p_queue, v_keys) ELSE 0 END;
END
$$;

-- Removes tasks whose subject went without a trigger seeing it: with a partition
-- that was dropped or detached, or where triggers were switched off. Looks at so
-- many tasks a call, goes on where the last call ended, and ends at the latest
-- with its round; one process at a time. Tells how many tasks were removed.
--
-- Pending tasks are walked as they are claimed. One that moves in front of the walk
-- and back behind it is seen in the next round; blocked ones stand outside that
-- order, but their key is in flight, and goes with the task that holds it.
CREATE FUNCTION gristmill.sweep_subjects(p_limit integer, p_now timestamptz DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off
SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC'
SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $$
DECLARE
    -- A step costs something even where it finds nothing.
    c_step  constant integer := 10;
    v_at    gristmill.subject_sweep;
    v_after bigint;
    v_keys  text[];
    v_seen  integer;
    v_asked integer;
    v_lease record;
    v_left  integer := p_limit;
    v_gone  bigint := 0;
BEGIN
    IF (SELECT b.queue FROM gristmill.bound b LIMIT 1) IS NULL
       OR NOT pg_try_advisory_xact_lock('gristmill.subject_sweep'::regclass::oid::integer, 0) THEN
        RETURN 0;
    END IF;
    SELECT * INTO v_at FROM gristmill.subject_sweep;
    WHILE v_left > 0 LOOP
        v_asked := v_left;
        v_seen := 0;
        v_keys := NULL;
        SELECT b.after INTO v_after FROM gristmill.bound b WHERE b.queue = v_at.queue;
        IF v_at.part = 4 THEN
            -- By token, which stays while a lease is prolonged.
            v_asked := greatest(v_left / c_step, 1);
            FOR v_lease IN
                SELECT l.token, l.queue, b.after,
                       CASE WHEN b.queue IS NOT NULL THEN
                           ARRAY(SELECT k.key FROM unnest(l.keyed, l.keys) AS k (id, key)
                                  WHERE k.id > b.after) END AS keys
                  FROM gristmill.lease l
                  LEFT JOIN gristmill.bound b ON b.queue = l.queue
                 WHERE l.token > v_at.token
                 ORDER BY l.token LIMIT v_asked
            LOOP
                v_seen := v_seen + 1;
                v_at.token := v_lease.token;
                v_left := v_left - c_step - coalesce(cardinality(v_lease.keys), 0);
                IF v_lease.keys <> '{}' THEN
                    v_gone := v_gone + gristmill.remove_orphans(v_lease.queue, v_lease.keys);
                END IF;
                EXIT WHEN v_left <= 0;
            END LOOP;
            -- Left in the middle: the next call goes on here.
            v_seen := CASE WHEN v_left <= 0 THEN v_asked ELSE v_seen END;
        ELSIF v_after IS NULL THEN
            NULL; -- unbound meanwhile, or a round begins
        ELSIF v_at.part = 1 THEN
            SELECT count(*), array_agg(p.key) FILTER (WHERE p.id > v_after AND p.key IS NOT NULL),
                   coalesce((array_agg(p.priority))[count(*)], v_at.priority),
                   coalesce((array_agg(p.run_at))[count(*)], v_at.at),
                   coalesce((array_agg(p.id))[count(*)], v_at.id)
              INTO v_seen, v_keys, v_at.priority, v_at.at, v_at.id
              FROM (SELECT t.key, t.priority, t.run_at, t.id FROM gristmill.task t
                     WHERE t.queue = v_at.queue AND NOT t.blocked
                       AND (t.priority, t.run_at, t.id) > (v_at.priority, v_at.at, v_at.id)
                     ORDER BY t.priority, t.run_at, t.id LIMIT v_asked) p;
        ELSIF v_at.part = 2 THEN
            SELECT count(*), array_agg(p.key) FILTER (WHERE p.id > v_after AND p.key IS NOT NULL),
                   coalesce(max(p.id), v_at.id)
              INTO v_seen, v_keys, v_at.id
              FROM (SELECT t.key, t.id FROM gristmill.failed t
                     WHERE t.queue = v_at.queue AND t.id > v_at.id
                     ORDER BY t.id LIMIT v_asked) p;
        ELSE
            SELECT count(*), array_agg(p.key) FILTER (WHERE p.id > v_after AND p.key IS NOT NULL),
                   coalesce((array_agg(p.resolved_at))[count(*)], v_at.at),
                   coalesce((array_agg(p.id))[count(*)], v_at.id)
              INTO v_seen, v_keys, v_at.at, v_at.id
              FROM (SELECT t.key, t.resolved_at, t.id FROM gristmill.done t
                     WHERE t.queue = v_at.queue AND t.resolved_at >= v_at.at
                       AND (t.resolved_at > v_at.at OR t.id > v_at.id)
                     ORDER BY t.resolved_at, t.id LIMIT v_asked) p;
        END IF;
        IF v_keys IS NOT NULL THEN
            v_gone := v_gone + gristmill.remove_orphans(v_at.queue, v_keys);
        END IF;
        IF v_at.part < 4 THEN
            v_left := v_left - v_seen - c_step;
        END IF;
        IF v_seen < v_asked THEN
            EXIT WHEN v_at.part = 4;
            v_at := gristmill.next_part(v_at);
        END IF;
    END LOOP;
    IF v_left > 0 THEN
        -- The round is over: the next call begins another.
        v_at := gristmill.next_part(v_at);
    END IF;
    UPDATE gristmill.subject_sweep s
       SET queue = v_at.queue, part = v_at.part, priority = v_at.priority, at = v_at.at,
           id = v_at.id, token = v_at.token;
    RETURN v_gone;
END
$$;

-- Where the sweep of subjects goes on when a part is at its end: the queue's next
-- part, the next queue's first one, and after all of them the leases.
CREATE FUNCTION gristmill.next_part(p_at gristmill.subject_sweep)
RETURNS gristmill.subject_sweep
LANGUAGE plpgsql AS $$
DECLARE
    c_first constant gristmill.subject_sweep := ROW(true, 0, 3, -32768, '-infinity', 0,
        '00000000-0000-0000-0000-000000000000');
    v_at gristmill.subject_sweep := c_first;
BEGIN
    IF p_at.part = 4 THEN
        RETURN v_at;
    END IF;
    v_at.queue := p_at.queue;
    v_at.part := p_at.part + 1;
    IF v_at.part = 4 THEN
        v_at.queue := (SELECT b.queue FROM gristmill.bound b WHERE b.queue > p_at.queue
                        ORDER BY b.queue LIMIT 1);
        IF v_at.queue IS NULL THEN
            v_at.queue := 0;
        ELSE
            v_at.part := 1;
            PERFORM gristmill.keep_bound(v_at.queue);
        END IF;
    END IF;
    RETURN v_at;
END
$$;
