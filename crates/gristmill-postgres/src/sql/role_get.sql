SELECT leader, term, until, hold FROM gristmill.role WHERE role = $1 FOR UPDATE
