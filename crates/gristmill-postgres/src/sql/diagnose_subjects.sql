-- Bound queues: does the table stand, and do its three triggers fire?
SELECT q.name::text, q.bind_table, q.bind_column, to_regclass(q.bind_table) IS NOT NULL AS stands,
       (SELECT count(*) FROM pg_trigger t
         WHERE t.tgrelid = to_regclass(q.bind_table) AND t.tgenabled <> 'D'
           AND t.tgname LIKE 'gristmill\_' || q.number || '\_%'
           AND t.tgfoid = 'gristmill.subject_trigger()'::regprocedure) AS triggers
  FROM gristmill.queue q
 WHERE q.bind_table IS NOT NULL
 ORDER BY q.number
