UPDATE gristmill_lease SET open = ?2, ids = ?3 WHERE number = ?1;
