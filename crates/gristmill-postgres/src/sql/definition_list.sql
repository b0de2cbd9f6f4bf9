-- What was made, how, and the body that stands now: null where nothing does.
SELECT d.kind::text, d.name::text, d.checksum,
       CASE d.kind
           WHEN 'function' THEN (SELECT min(p.prosrc) FROM pg_proc p
                                  WHERE p.pronamespace = h.home AND p.proname = d.name)
           WHEN 'view' THEN (SELECT '' FROM pg_class c
                              WHERE c.relnamespace = h.home AND c.relname = d.name
                                AND c.relkind = 'v')
           ELSE (SELECT min('') FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                  WHERE c.relnamespace = h.home AND t.tgname = d.name AND NOT t.tgisinternal)
       END
  FROM gristmill.definition d
 CROSS JOIN (SELECT c.relnamespace AS home FROM pg_class c
              WHERE c.oid = 'gristmill.migration'::regclass) h
