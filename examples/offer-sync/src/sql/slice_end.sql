UPDATE slice SET ended = ?2 WHERE rowid = ?1
