-- The store's tables: rows that live, rows that are dead, bytes with indexes,
-- and how long ago a vacuum went over them.
SELECT t.relname::text, t.n_live_tup, t.n_dead_tup, pg_total_relation_size(t.relid),
       extract(epoch FROM clock_timestamp() - greatest(t.last_vacuum, t.last_autovacuum))::double precision
  FROM pg_stat_all_tables t
 WHERE t.schemaname = $1
 ORDER BY t.n_dead_tup DESC
