DELETE FROM gristmill_task WHERE id BETWEEN ?1 AND ?2;
