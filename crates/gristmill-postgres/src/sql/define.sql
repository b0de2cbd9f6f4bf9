-- Makes functions, views and triggers as they should be, and remembers how they are.
-- It stands only while a migration runs, whose transaction takes it away again.
--
-- What can be changed in place is (CREATE OR REPLACE), and keeps its rights and
-- whatever stands on it: the triggers of an application's tables call functions of
-- this schema. What cannot, because its arguments or its columns are others now, is
-- dropped and made anew, and gets the rights again that it had. Nothing of somebody
-- else's is dropped along: PostgreSQL names it, and then nothing is changed at all.
--
-- All of what should stand is told, in the order in which it can be made; what is to
-- be made is marked. What was made once and is told no more goes. Answers the
-- functions that were not there before.
CREATE FUNCTION gristmill.define(
    p_kinds text[], p_names text[], p_texts text[], p_checksums text[], p_marked boolean[]
) RETURNS text[]
LANGUAGE plpgsql AS $define$
DECLARE
    v_home   oid := (SELECT c.relnamespace FROM pg_class c
                      WHERE c.oid = 'gristmill.migration'::regclass);
    v_before text[] := ARRAY(SELECT p.proname::text FROM pg_proc p WHERE p.pronamespace = v_home);
    v_grants text[];
    v_anew   text[];
    v_views  boolean := false;
    v_drop   text;
BEGIN
    FOR i IN 1..cardinality(p_names) LOOP
        CONTINUE WHEN NOT p_marked[i] OR (p_kinds[i] = 'view' AND v_views);
        BEGIN
            IF p_kinds[i] = 'trigger' THEN
                FOR v_drop IN
                    SELECT format('DROP TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass)
                      FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                     WHERE c.relnamespace = v_home AND t.tgname = p_names[i]
                       AND NOT t.tgisinternal
                LOOP
                    EXECUTE v_drop;
                END LOOP;
            END IF;
            EXECUTE p_texts[i];
            -- Other types of arguments make a second function of the name.
            IF (SELECT count(*) FROM pg_proc p
                 WHERE p.pronamespace = v_home AND p.proname = p_names[i]) > 1 THEN
                RAISE invalid_function_definition;
            END IF;
        EXCEPTION WHEN invalid_function_definition OR invalid_table_definition THEN
            -- Views may stand on a function, and on each other: all of them go, the
            -- newest first, and come again below.
            FOR v_drop IN
                SELECT format('DROP VIEW %s', c.oid::regclass) FROM pg_class c
                  JOIN unnest(p_names) WITH ORDINALITY AS n (name, nth) ON n.name = c.relname
                 WHERE c.relnamespace = v_home AND c.relkind = 'v' ORDER BY n.nth DESC
            LOOP
                IF NOT v_views THEN
                    v_grants := v_grants || ARRAY(
                        SELECT format('GRANT %s %s ON %s TO %s%s', a.privilege_type, w.of_column,
                                      c.oid::regclass,
                                      CASE a.grantee WHEN 0 THEN 'PUBLIC'
                                           ELSE a.grantee::regrole::text END,
                                      CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END)
                          FROM pg_class c
                         CROSS JOIN LATERAL (
                               SELECT c.relacl AS acl, '' AS of_column
                                UNION ALL
                               SELECT x.attacl, format('(%I)', x.attname) FROM pg_attribute x
                                WHERE x.attrelid = c.oid AND x.attnum > 0) w
                         CROSS JOIN LATERAL aclexplode(w.acl) a
                         WHERE c.relnamespace = v_home AND c.relkind = 'v'
                           AND c.relname = ANY (p_names) AND a.grantee <> c.relowner);
                    v_views := true;
                END IF;
                EXECUTE v_drop;
            END LOOP;
            v_grants := v_grants || ARRAY(
                SELECT format('GRANT EXECUTE ON FUNCTION %I.%I TO %s%s',
                              p.pronamespace::regnamespace, p.proname,
                              CASE a.grantee WHEN 0 THEN 'PUBLIC'
                                   ELSE a.grantee::regrole::text END,
                              CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END)
                  FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
                 WHERE p.pronamespace = v_home AND p.proname = p_names[i]
                   AND a.grantee <> p.proowner);
            v_anew := v_anew || p_names[i];
            FOR v_drop IN
                SELECT format('DROP FUNCTION %s', p.oid::regprocedure) FROM pg_proc p
                 WHERE p.pronamespace = v_home AND p.proname = p_names[i]
            LOOP
                EXECUTE v_drop;
            END LOOP;
            IF p_kinds[i] <> 'view' THEN
                EXECUTE p_texts[i];
            END IF;
        END;
    END LOOP;
    IF v_views THEN
        FOR i IN 1..cardinality(p_names) LOOP
            IF p_kinds[i] = 'view' THEN
                EXECUTE p_texts[i];
            END IF;
        END LOOP;
    END IF;
    FOR v_drop IN
        SELECT CASE d.kind
                   WHEN 'function' THEN (SELECT string_agg(format('DROP FUNCTION %s',
                                                                  p.oid::regprocedure), '; ')
                                           FROM pg_proc p
                                          WHERE p.pronamespace = v_home AND p.proname = d.name)
                   WHEN 'view' THEN (SELECT format('DROP VIEW %s', c.oid::regclass)
                                       FROM pg_class c
                                      WHERE c.relnamespace = v_home AND c.relname = d.name
                                        AND c.relkind = 'v')
                   ELSE (SELECT format('DROP TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass)
                           FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                          WHERE c.relnamespace = v_home AND t.tgname = d.name
                            AND NOT t.tgisinternal)
               END
          FROM gristmill.definition d
         WHERE (d.kind, d.name) NOT IN (SELECT * FROM unnest(p_kinds, p_names))
         -- What may stand on others first.
         ORDER BY array_position(ARRAY['trigger', 'view', 'function'], d.kind::text)
    LOOP
        IF v_drop IS NOT NULL THEN
            EXECUTE v_drop;
        END IF;
    END LOOP;
    DELETE FROM gristmill.definition d
     WHERE (d.kind, d.name) NOT IN (SELECT * FROM unnest(p_kinds, p_names));
    INSERT INTO gristmill.definition (kind, name, checksum)
    SELECT m.kind, m.name, m.checksum
      FROM unnest(p_kinds, p_names, p_checksums, p_marked) AS m (kind, name, checksum, is_marked)
     WHERE m.is_marked
    ON CONFLICT (kind, name) DO UPDATE
       SET checksum = excluded.checksum, made_at = clock_timestamp();
    -- What is made from nothing may be executed by everybody.
    FOR v_drop IN
        SELECT format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', p.oid::regprocedure)
          FROM pg_proc p
         WHERE p.pronamespace = v_home AND p.proname = ANY (p_names)
           AND (p.proname = ANY (v_anew) OR p.proname <> ALL (v_before))
    LOOP
        EXECUTE v_drop;
    END LOOP;
    FOREACH v_drop IN ARRAY coalesce(v_grants, '{}') LOOP
        BEGIN
            EXECUTE v_drop;
        EXCEPTION WHEN undefined_column THEN
            NULL; -- a right on a column that its view has no more
        END;
    END LOOP;
    RETURN ARRAY(SELECT n.name FROM unnest(p_kinds, p_names) AS n (kind, name)
                  WHERE n.kind = 'function' AND n.name <> ALL (v_before));
EXCEPTION WHEN dependent_objects_still_exist THEN
    GET STACKED DIAGNOSTICS v_drop = PG_EXCEPTION_DETAIL;
    RAISE EXCEPTION 'the functions cannot be brought up to date: %: %', SQLERRM, v_drop
        USING ERRCODE = 'dependent_objects_still_exist',
              HINT = 'drop what stands on it, migrate, and make it again';
END
$define$;
