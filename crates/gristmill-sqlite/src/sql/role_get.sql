SELECT leader, term, until, hold FROM gristmill_role WHERE role = ?1;
