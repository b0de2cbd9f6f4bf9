SELECT status, count(*) FROM {table} GROUP BY status
