-- What is new, and what failed less than ?2 times and has waited ?4 for each. Of each
-- reader, no more than the credits pay for that nothing else on its way will use.
WITH owed AS (
    SELECT s.reader_id, count(*) AS items
      FROM news_item i JOIN source s ON s.id = i.source_id
     WHERE i.status IN ('PENDING', 'PROCESSING')
     GROUP BY s.reader_id
), waiting AS (
    SELECT i.id, r.credits - coalesce(o.items, 0) AS paid,
           row_number() OVER (PARTITION BY r.id ORDER BY i.id) AS place
      FROM news_item i
      JOIN source s ON s.id = i.source_id
      JOIN reader r ON r.id = s.reader_id
      LEFT JOIN owed o ON o.reader_id = r.id
     WHERE r.credits > 0
       AND (i.status = 'NEW'
            OR i.status = 'ERROR' AND i.attempts < ?2 AND i.status_at + i.attempts * ?4 <= ?3)
)
SELECT id FROM waiting WHERE place <= paid ORDER BY id LIMIT ?1
