DELETE FROM gristmill_id WHERE (queue, id) IN (SELECT queue, id FROM gristmill_id WHERE until <= ?1 LIMIT ?2);
