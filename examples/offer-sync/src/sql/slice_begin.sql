INSERT INTO slice (task, worker, kind, number, first, last, rows, began)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
