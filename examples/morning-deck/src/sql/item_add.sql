INSERT INTO news_item (source_id, guid, url, title, content, status, status_at, done_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, iif(?6 = 'DONE', ?7, NULL))
ON CONFLICT (source_id, guid) DO NOTHING
