-- The first of these tasks that has not ended.
SELECT u.id
  FROM unnest($1) WITH ORDINALITY AS u (id, position)
 CROSS JOIN LATERAL gristmill.standing(u.id) s
 WHERE s.state IN ('pending', 'processing')
 ORDER BY u.position
 LIMIT 1
