SELECT id FROM gristmill_task WHERE queue = ?1 AND key = ?2 AND place < 2
UNION ALL
SELECT id FROM gristmill_failed WHERE queue = ?1 AND key = ?2;
