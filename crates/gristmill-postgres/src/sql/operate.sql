SELECT u.id, o.answer, o.other, o.state, q.name
  FROM unnest($2) WITH ORDINALITY AS u (id, position)
 CROSS JOIN LATERAL gristmill.operate_one($1, u.id, $3, $4, coalesce($5, clock_timestamp())) o
  LEFT JOIN gristmill.queue q ON q.number = o.woken
 ORDER BY u.position
