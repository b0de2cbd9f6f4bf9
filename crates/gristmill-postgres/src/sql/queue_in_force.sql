SELECT gristmill.put_in_force($1, $2::jsonb)
