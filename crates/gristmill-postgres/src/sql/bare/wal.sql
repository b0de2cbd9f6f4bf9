-- What was written ahead so far, flushed or not.
SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint
