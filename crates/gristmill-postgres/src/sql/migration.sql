-- The schema's own history, and scripts that tell it; what stands in braces is put in.

-- name: migration_table
CREATE SCHEMA IF NOT EXISTS gristmill;
-- The steps that made the tables.
CREATE TABLE IF NOT EXISTS gristmill.migration (
    version  integer PRIMARY KEY,
    checksum text        NOT NULL,
    run_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- The functions, views and triggers that stand beside them, each with a checksum of
-- the statement that made it.
CREATE TABLE IF NOT EXISTS gristmill.definition (
    kind     text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    checksum text        NOT NULL,
    made_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (kind, name)
)

-- name: migration_lock
-- Held until the transaction ends: a killed or cancelled caller leaves nothing.
SELECT pg_advisory_xact_lock(hashtext('gristmill migration'), hashtext($1))

-- name: migration_known
SELECT to_regclass($1) IS NOT NULL AS stands

-- name: migration_list
SELECT version, checksum FROM gristmill.migration ORDER BY version

-- name: migration_record
INSERT INTO gristmill.migration (version, checksum) VALUES ($1, $2)

-- name: meta_make
INSERT INTO gristmill.meta (store_id) VALUES ('{id}')

-- name: print_record
INSERT INTO gristmill.migration (version, checksum) VALUES ({version}, '{checksum}');

-- name: print_definition
INSERT INTO gristmill.definition (kind, name, checksum) VALUES ('{kind}', '{name}', '{checksum}');

-- name: print_meta
INSERT INTO gristmill.meta (store_id, definitions, program)
VALUES (gen_random_uuid(), '{definitions}', '{program}');
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA gristmill FROM PUBLIC;

-- name: definition_standing
SELECT definitions, program FROM gristmill.meta

-- name: definition_list
-- What was made, how, and the body that stands now: null where nothing does.
SELECT d.kind::text, d.name::text, d.checksum,
       CASE d.kind
           WHEN 'function' THEN (SELECT min(p.prosrc) FROM pg_proc p
                                  WHERE p.pronamespace = h.home AND p.proname = d.name)
           WHEN 'view' THEN (SELECT '' FROM pg_class c
                              WHERE c.relnamespace = h.home AND c.relname = d.name
                                AND c.relkind = 'v')
           ELSE (SELECT min('') FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                  WHERE c.relnamespace = h.home AND t.tgname = d.name AND NOT t.tgisinternal)
       END AS body
  FROM gristmill.definition d
 CROSS JOIN (SELECT c.relnamespace AS home FROM pg_class c
              WHERE c.oid = 'gristmill.migration'::regclass) h

-- name: definition_define
SELECT gristmill.define(p_kinds => $1, p_names => $2, p_texts => $3, p_checksums => $4,
                        p_marked => $5) AS new

-- name: definition_drop
DROP FUNCTION gristmill.define

-- name: definition_remember
UPDATE gristmill.meta SET definitions = $1, program = $2

-- name: role_standing
-- Which of these roles were made for this schema: those that may use it.
SELECT r.rolname::text AS role FROM pg_roles r
 WHERE r.rolname = ANY ($1)
   AND has_schema_privilege(r.oid, (SELECT c.relnamespace FROM pg_class c
                                     WHERE c.oid = 'gristmill.migration'::regclass), 'USAGE')

-- name: rights_grant
GRANT EXECUTE ON FUNCTION gristmill.{function} TO {roles};
