-- By number, so that the newest are found without a look at the others.
SELECT i.title, i.score, i.summary, r.mail
  FROM news_item i
  JOIN source s ON s.id = i.source_id
  JOIN reader r ON r.id = s.reader_id
 WHERE i.status = 'DONE' AND i.score IS NOT NULL
 ORDER BY i.id DESC
 LIMIT ?1
