-- Everything that stands in a schema, each with the statement or the words
-- that make it. Two schemas made by the same steps give the same rows.
SELECT 'column' AS kind, c.relname || '.' || a.attname AS name,
       format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
           || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
           || ' storage ' || a.attstorage::text AS definition,
       true AS valid
  FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r'
UNION ALL
SELECT 'index', i.relname::text, pg_get_indexdef(x.indexrelid), x.indisvalid
  FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
 WHERE i.relnamespace = to_regnamespace($1)
UNION ALL
SELECT 'constraint', r.relname || '.' || k.conname, pg_get_constraintdef(k.oid), k.convalidated
  FROM pg_constraint k JOIN pg_class r ON r.oid = k.conrelid
 WHERE k.connamespace = to_regnamespace($1) AND k.contype IN ('c', 'p', 'u', 'f')
UNION ALL
SELECT 'function', p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
       pg_get_functiondef(p.oid), true
  FROM pg_proc p
 WHERE p.pronamespace = to_regnamespace($1) AND p.prokind IN ('f', 'p')
UNION ALL
SELECT 'view', c.relname::text, pg_get_viewdef(c.oid), true
  FROM pg_class c
 WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'v'
UNION ALL
SELECT 'trigger', c.relname || '.' || t.tgname, pg_get_triggerdef(t.oid) || ' fires ' || t.tgenabled::text,
       true
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE c.relnamespace = to_regnamespace($1) AND NOT t.tgisinternal
UNION ALL
SELECT 'storage', c.relname::text, coalesce(array_to_string(c.reloptions, ', '), ''), true
  FROM pg_class c
 WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r'
 ORDER BY 1, 2
