INSERT INTO briefing (reader_id, title, at, weekday, by_mail, created_at, status_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
RETURNING id
