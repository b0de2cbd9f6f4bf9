UPDATE gristmill_lease SET until = ?2 WHERE number = ?1;
