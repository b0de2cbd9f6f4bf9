SELECT count(*) FROM gristmill_lease WHERE queue = ?1 AND grp = ?2 AND until > ?3;
