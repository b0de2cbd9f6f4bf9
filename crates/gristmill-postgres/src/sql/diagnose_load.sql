-- How much of what runs out is used: connections, the notification queue, and
-- transaction numbers of this database.
SELECT (SELECT count(*) FROM pg_stat_activity a WHERE a.backend_type = 'client backend') AS connections,
       current_setting('max_connections')::bigint AS most,
       pg_notification_queue_usage() AS notifications,
       (SELECT age(d.datfrozenxid)::bigint FROM pg_database d
         WHERE d.datname = current_database()) AS age
