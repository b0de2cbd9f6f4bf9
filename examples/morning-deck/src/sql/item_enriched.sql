UPDATE news_item
   SET content = ?2, summary = ?3, tags = ?4, score = ?5, score_reasoning = ?6, done_at = ?7
 WHERE id = ?1
