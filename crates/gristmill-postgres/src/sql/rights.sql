-- The roles of a store and what each may do. Nobody logs in as one of them: they
-- are granted to those who do. Roles belong to the whole server, so a schema of
-- the same name in another database has the same ones; the grants are this
-- database's. It can be run again; a migration grants new functions by itself where
-- the roles stand.
DO $$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['gristmill_put', 'gristmill_work', 'gristmill_read',
                                  'gristmill_admin', 'gristmill_store']
    LOOP
        BEGIN
            IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles r WHERE r.rolname = v_role) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', v_role);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL; -- somebody else made it a moment ago
        END;
    END LOOP;
END
$$;

GRANT USAGE ON SCHEMA gristmill
   TO gristmill_put, gristmill_work, gristmill_read, gristmill_admin, gristmill_store;

-- Producers.
GRANT EXECUTE ON FUNCTION gristmill.enqueue, gristmill.enqueue_many, gristmill.wake,
      gristmill.result
   TO gristmill_put;

-- Workers, and cron.
GRANT EXECUTE ON FUNCTION gristmill.claim, gristmill.complete, gristmill.complete_many,
      gristmill.error, gristmill.retry, gristmill.fail, gristmill.release, gristmill.extend,
      gristmill.checkpoint, gristmill.progress,
      gristmill.requeue_expired, gristmill.maintain, gristmill.wake
   TO gristmill_work;

-- Who only looks. Payloads are in what they see.
GRANT SELECT ON gristmill.tasks TO gristmill_read, gristmill_admin;
GRANT EXECUTE ON FUNCTION gristmill.stats, gristmill.schedules, gristmill.as_json,
      gristmill.result
   TO gristmill_read, gristmill_admin;

-- Operators.
GRANT EXECUTE ON FUNCTION gristmill.add_queue, gristmill.declare_queue, gristmill.pause,
      gristmill.resume, gristmill.retry_failed, gristmill.retry_failed_task, gristmill.resolve,
      gristmill.discard, gristmill.cancel, gristmill.add_schedule, gristmill.pause_schedule,
      gristmill.resume_schedule, gristmill.fire_schedule, gristmill.remove_schedule,
      gristmill.requeue_expired, gristmill.maintain, gristmill.wake
   TO gristmill_admin;

-- Programs that use the library or the command line: they run statements on the
-- tables, and functions that take a time from who calls them. They are trusted
-- with everything but the schema itself.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA gristmill TO gristmill_store;
REVOKE INSERT, UPDATE, DELETE ON gristmill.migration, gristmill.definition FROM gristmill_store;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA gristmill TO gristmill_store;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA gristmill TO gristmill_store;
