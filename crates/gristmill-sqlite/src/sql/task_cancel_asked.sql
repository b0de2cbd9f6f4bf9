SELECT cancel_requested FROM gristmill_task WHERE id = ?1;
