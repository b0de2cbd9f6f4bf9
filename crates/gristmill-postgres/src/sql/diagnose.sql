-- `gristmill doctor`: the schema, the server, and what holds vacuum up.

-- name: diagnose_load
-- How much of what runs out is used: connections, the notification queue, and
-- transaction numbers of this database.
SELECT (SELECT count(*) FROM pg_stat_activity a WHERE a.backend_type = 'client backend') AS connections,
       current_setting('max_connections')::bigint AS most,
       pg_notification_queue_usage() AS notifications,
       (SELECT age(d.datfrozenxid)::bigint FROM pg_database d
         WHERE d.datname = current_database()) AS age

-- name: diagnose_objects
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

-- name: diagnose_settings
-- Settings that durability or vacuum rest on, as they are for this role in
-- this database, and where each came from.
SELECT s.name::text, s.setting, s.source FROM pg_settings s
 WHERE s.name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'track_counts',
                  'zero_damaged_pages', 'ignore_checksum_failure', 'server_version_num')
 ORDER BY s.name

-- name: diagnose_standbys
-- Who would take over from this server, and with how much. Sessions of logical
-- replication are no standbys. Whoever may not see others' sessions gets them
-- without their states.
SELECT current_setting('transaction_read_only') = 'on' AS read_only,
       current_setting('synchronous_standby_names') AS wanted,
       current_setting('synchronous_commit') AS commits,
       count(*) FILTER (WHERE r.state = 'streaming') AS following,
       count(*) FILTER (WHERE r.sync_state IN ('sync', 'quorum')) AS synchronous,
       count(*) FILTER (WHERE r.state IS NULL) AS unseen
  FROM pg_stat_replication r
 WHERE NOT EXISTS (SELECT FROM pg_replication_slots s
                    WHERE s.active_pid = r.pid AND s.slot_type = 'logical')

-- name: diagnose_subjects
-- Bound queues: what they were bound to, why that cannot be found (null: it can),
-- what it is called now, how many of its triggers are missing or switched off,
-- whether its rows are found by an index, and whether the triggers may read it.
SELECT q.name::text AS queue, q.bind_table, q.bind_column, p.fault, p.whole_name AS table_now,
       p.col AS column_now,
       coalesce((SELECT c.relname <> x.name[cardinality(x.name)]
                   FROM pg_class c, parse_ident(q.bind_table) AS x (name)
                  WHERE c.oid = p.place) OR p.col <> q.bind_column, false) AS renamed,
       (SELECT count(*) FROM gristmill.triggers_missing(q.number, p.place)) AS missing,
       coalesce(p.indexed, false) AS indexed,
       coalesce(gristmill.may_read(p.place), false) AS readable
  FROM gristmill.queue q
 CROSS JOIN LATERAL gristmill.subject_place(q.number) p
 WHERE q.bind_table IS NOT NULL
 ORDER BY q.number

-- name: diagnose_tables
-- The store's tables: rows that live, rows that are dead, bytes with indexes,
-- and how long ago a vacuum went over them.
SELECT t.relname::text AS name, t.n_live_tup AS live, t.n_dead_tup AS dead,
       pg_total_relation_size(t.relid) AS bytes,
       extract(epoch FROM clock_timestamp() - greatest(t.last_vacuum, t.last_autovacuum))::double precision
           AS vacuumed
  FROM pg_stat_all_tables t
 WHERE t.schemaname = $1
 ORDER BY t.n_dead_tup DESC

-- name: diagnose_transactions
-- Who keeps dead rows from being removed, oldest first: open transactions of
-- the whole server, prepared ones, and replication slots. seconds is null
-- where only an age in transactions is known. is_ours: it has put, or settled,
-- which shows in the locks that a change of our tables leaves until its end.
SELECT 'transaction' AS kind, a.pid::text AS name,
       extract(epoch FROM coalesce($1, clock_timestamp()) - a.xact_start)::double precision AS seconds,
       coalesce(a.usename::text, '?') AS who, coalesce(nullif(a.application_name, ''), '?') AS program,
       coalesce(a.state, '?') AS state, coalesce(age(coalesce(a.backend_xmin, a.backend_xid)), 0) AS age,
       EXISTS (SELECT 1 FROM pg_locks l
                WHERE l.pid = a.pid AND l.mode = 'RowExclusiveLock'
                  AND l.database = (SELECT d.oid FROM pg_database d
                                     WHERE d.datname = current_database())
                  AND l.relation IN ('gristmill.task'::regclass, 'gristmill.marker'::regclass,
                                     'gristmill.settling'::regclass)) AS is_ours
  FROM pg_stat_activity a
 WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()
   AND a.xact_start IS NOT NULL AND coalesce(a.backend_xmin, a.backend_xid) IS NOT NULL
UNION ALL
SELECT 'prepared', p.gid::text, extract(epoch FROM coalesce($1, clock_timestamp()) - p.prepared)::double precision,
       p.owner::text, '?', 'prepared', age(p.transaction), false
  FROM pg_prepared_xacts p
UNION ALL
SELECT 'slot', s.slot_name::text, NULL, '?', '?', CASE WHEN s.active THEN 'active' ELSE 'idle' END,
       age(coalesce(s.xmin, s.catalog_xmin)), false
  FROM pg_replication_slots s
 WHERE s.xmin IS NOT NULL
 ORDER BY 3 DESC NULLS LAST
 LIMIT 20
