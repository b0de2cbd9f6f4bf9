UPDATE gristmill_lease SET until = ?2, length = ?3 WHERE number = ?1;
