INSERT OR REPLACE INTO gristmill_schedule
    (name, declared, payload, paused, paused_by, decided_until, last_fire, last_tasks, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);
