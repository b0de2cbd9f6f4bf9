SELECT taken, failed FROM gristmill.expire(NULL, $1, $2, $3, coalesce($4, clock_timestamp()))
