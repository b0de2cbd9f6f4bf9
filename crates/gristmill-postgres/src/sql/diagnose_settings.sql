-- Settings that durability or vacuum rest on, as they are for this role in
-- this database, and where each came from.
SELECT s.name::text, s.setting, s.source FROM pg_settings s
 WHERE s.name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'track_counts',
                  'zero_damaged_pages', 'ignore_checksum_failure', 'server_version_num')
 ORDER BY s.name
