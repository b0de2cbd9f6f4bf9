SELECT id, url, title, summary, tags, score FROM news_item
 WHERE score IS NOT NULL AND indexed_at IS NULL
 ORDER BY id LIMIT ?1
