SELECT token, queue, length FROM gristmill_lease WHERE queue = ?2 AND until <= ?1 ORDER BY until, token;
