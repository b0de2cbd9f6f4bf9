DELETE FROM gristmill_lease WHERE number = ?1;
