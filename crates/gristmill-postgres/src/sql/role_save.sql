UPDATE gristmill.role SET leader = $2, term = $3, until = $4, hold = $5 WHERE role = $1
