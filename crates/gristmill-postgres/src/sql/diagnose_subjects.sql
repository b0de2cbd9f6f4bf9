-- Bound queues: what they were bound to, why that cannot be found (null: it can),
-- what it is called now, how many of its triggers are missing or switched off,
-- whether its rows are found by an index, and whether the triggers may read it.
SELECT q.name::text, q.bind_table, q.bind_column, p.fault, p.whole_name, p.col,
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
