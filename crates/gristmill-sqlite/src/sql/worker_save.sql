INSERT INTO gristmill_worker (id, report, since, seen) VALUES (?1, ?2, ?3, ?3)
    ON CONFLICT (id) DO UPDATE SET report = excluded.report, seen = excluded.seen;
