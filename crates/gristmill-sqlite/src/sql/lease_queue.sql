SELECT queue FROM gristmill_lease WHERE token = ?1;
