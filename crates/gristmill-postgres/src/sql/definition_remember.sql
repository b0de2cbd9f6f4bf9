UPDATE gristmill.meta SET definitions = $1, program = $2
