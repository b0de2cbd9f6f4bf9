DELETE FROM gristmill.worker WHERE id = $1 RETURNING 1
