UPDATE news_item SET indexed_at = ?2 WHERE id = ?1
