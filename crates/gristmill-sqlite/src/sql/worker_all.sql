SELECT report, since, seen FROM gristmill_worker ORDER BY id;
