SELECT i.id, i.url, i.title, i.content, r.interests, r.credits
  FROM news_item i
  JOIN source s ON s.id = i.source_id
  JOIN reader r ON r.id = s.reader_id
 WHERE i.id = ?1
