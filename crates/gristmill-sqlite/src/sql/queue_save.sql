INSERT INTO gristmill_queue (number, name, declared, overridden, paused, paused_by, contract, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (number) DO UPDATE SET
       declared = excluded.declared, overridden = excluded.overridden, paused = excluded.paused,
       paused_by = excluded.paused_by, contract = excluded.contract;
