WITH saved AS (
    INSERT INTO gristmill.queue (number, name, declared, overridden, paused, paused_by, contract,
                                 created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (number) DO UPDATE
       SET declared = excluded.declared, overridden = excluded.overridden,
           paused = excluded.paused, paused_by = excluded.paused_by,
           contract = excluded.contract
    RETURNING number
)
INSERT INTO gristmill.total (queue) SELECT s.number FROM saved s ON CONFLICT DO NOTHING
