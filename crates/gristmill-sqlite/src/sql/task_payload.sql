SELECT payload FROM gristmill_task WHERE id = ?1;
