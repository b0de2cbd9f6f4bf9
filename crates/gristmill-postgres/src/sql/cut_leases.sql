SELECT gristmill.cut_leases($1, $2)
