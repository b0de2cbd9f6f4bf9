-- A queue got slots: its tasks must be found by group.
UPDATE gristmill_ready
   SET grp = coalesce((SELECT t.grp FROM gristmill_task t WHERE t.id = gristmill_ready.id), '')
 WHERE queue = ?1 AND grp IS NULL;
