DELETE FROM gristmill.schedule WHERE name = $1 RETURNING 1
