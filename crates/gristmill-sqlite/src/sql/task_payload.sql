SELECT payload, checksum FROM gristmill_task WHERE id = ?1;
