INSERT INTO slice (task, kind, number, first, last, rows, began)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
