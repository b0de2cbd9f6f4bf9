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
