INSERT INTO gristmill_bare (key, payload)
SELECT u.key, u.payload FROM unnest($1::text[], $2::bytea[]) AS u (key, payload)
ON CONFLICT DO NOTHING
