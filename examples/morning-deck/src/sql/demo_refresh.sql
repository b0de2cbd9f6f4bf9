-- As if every source that was fetched had been fetched a minute earlier.
UPDATE source SET fetched_at = fetched_at - 60000000 WHERE status = 'IDLE' AND fetched_at IS NOT NULL
