-- Of a schema's tables, or without one of the bare table: row versions that
-- updates and deletions made dead, how many of them still stand, and how often
-- vacuum came by. What a row keeps out of line dies with it, so that tables of
-- such pieces count too.
WITH measured AS (
    SELECT c.oid, c.reltoastrelid
      FROM pg_class c
     WHERE CASE WHEN $1::text IS NULL THEN c.oid = to_regclass('gristmill_bare')
                ELSE c.relnamespace = to_regnamespace($1::text) END
       AND c.relkind = 'r'
)
SELECT coalesce(sum(s.n_tup_upd + s.n_tup_del), 0)::bigint,
       coalesce(sum(s.n_dead_tup), 0)::bigint,
       coalesce(sum(s.vacuum_count + s.autovacuum_count), 0)::bigint
  FROM pg_stat_all_tables s
 WHERE s.relid IN (SELECT m.oid FROM measured m UNION SELECT m.reltoastrelid FROM measured m)
