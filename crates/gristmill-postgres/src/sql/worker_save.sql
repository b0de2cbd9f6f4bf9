INSERT INTO gristmill.worker (id, report, since, seen)
VALUES ($1, $2, coalesce($3, clock_timestamp()), coalesce($3, clock_timestamp()))
ON CONFLICT (id) DO UPDATE SET report = excluded.report, seen = excluded.seen
