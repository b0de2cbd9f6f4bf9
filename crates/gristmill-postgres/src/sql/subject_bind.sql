SELECT gristmill.bind_subject($1, $2, $3, $4)
