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
