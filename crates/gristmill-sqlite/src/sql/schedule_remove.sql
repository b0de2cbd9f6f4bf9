DELETE FROM gristmill_schedule WHERE name = ?1;
