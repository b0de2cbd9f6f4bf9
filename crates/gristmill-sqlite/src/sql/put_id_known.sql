SELECT task, digest FROM gristmill_id WHERE queue = ?1 AND id = ?2 AND until > ?3;
