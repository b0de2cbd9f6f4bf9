-- What the store is made of. Triggers stand on the application's tables and are
-- looked at with the queue they belong to.
SELECT type, name, sql FROM sqlite_schema
 WHERE substr(name, 1, 10) = 'gristmill_' AND type IN ('table', 'index', 'view')
 ORDER BY type, name;
