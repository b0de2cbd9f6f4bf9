-- Held until the transaction ends: a killed or cancelled caller leaves nothing.
SELECT pg_advisory_xact_lock(hashtext('gristmill migration'), hashtext($1))
