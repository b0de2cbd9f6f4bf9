SELECT id, attempts, error FROM {table} WHERE status = 'ERROR' ORDER BY status_at DESC LIMIT ?1
