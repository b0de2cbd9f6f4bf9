SELECT kind, number, first, last, rows FROM slice ORDER BY rowid
