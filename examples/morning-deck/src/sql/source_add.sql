INSERT INTO source (reader_id, kind, url, refresh_minutes, status_at) VALUES (?1, ?2, ?3, ?4, ?5)
RETURNING id
