INSERT INTO gristmill.meta (store_id, definitions, program)
VALUES (gen_random_uuid(), '{definitions}', '{program}');
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA gristmill FROM PUBLIC;
