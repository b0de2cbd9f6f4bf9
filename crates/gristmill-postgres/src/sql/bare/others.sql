-- A connection's counts are certain to be told when it has ended.
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = $1 AND pid <> pg_backend_pid()
