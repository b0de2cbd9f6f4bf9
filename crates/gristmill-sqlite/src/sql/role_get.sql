SELECT leader, term, until FROM gristmill_role WHERE role = ?1;
