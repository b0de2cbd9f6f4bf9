SELECT leader, term, until FROM gristmill.role WHERE role = $1 FOR UPDATE
