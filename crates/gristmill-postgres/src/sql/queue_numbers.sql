SELECT number, name FROM gristmill.queue ORDER BY number
