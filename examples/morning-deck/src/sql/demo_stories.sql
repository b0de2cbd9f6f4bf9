INSERT INTO news_item (source_id, guid, url, title, content, status, status_at,
                       summary, tags, score, score_reasoning, done_at)
SELECT s.id, 'early-' || n.place, s.url, n.title, n.title, 'DONE', ?1,
       n.title || ', in short.', '["early"]', n.score, 'brought along', ?1
  FROM (SELECT id, url FROM source ORDER BY id LIMIT 1) s
  JOIN (SELECT 1 AS place, 'Bakery extends its hours' AS title, 55 AS score
        UNION ALL SELECT 2, 'Tram line opens after two years', 80
        UNION ALL SELECT 3, 'Chess club wins at home', 30) n
