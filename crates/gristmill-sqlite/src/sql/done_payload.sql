SELECT payload FROM gristmill_done WHERE id = ?1;
