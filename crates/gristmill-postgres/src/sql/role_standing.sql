-- Which of these roles were made for this schema: those that may use it.
SELECT r.rolname::text FROM pg_roles r
 WHERE r.rolname = ANY ($1)
   AND has_schema_privilege(r.oid, (SELECT c.relnamespace FROM pg_class c
                                     WHERE c.oid = 'gristmill.migration'::regclass), 'USAGE')
