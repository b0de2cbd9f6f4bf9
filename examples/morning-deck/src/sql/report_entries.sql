SELECT i.title, i.url, i.summary, i.score
  FROM report_item e JOIN news_item i ON i.id = e.item_id
 WHERE e.report_id = ?1
 ORDER BY e.position
