SELECT worker, kind, number, first, last, rows, began, ended FROM slice ORDER BY rowid
