SELECT coalesce($1, clock_timestamp())
