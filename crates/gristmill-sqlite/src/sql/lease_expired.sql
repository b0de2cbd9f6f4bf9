SELECT token, queue, length FROM gristmill_lease WHERE until <= ?1 ORDER BY until, token;
