UPDATE slice SET ended = ?2, marked = ?3 WHERE rowid = ?1
