-- What the kept counts should be, counted from the tables.
SELECT q.number,
       (SELECT count(*) FROM gristmill_ready r WHERE r.queue = q.number AND r.delayed = 0),
       (SELECT count(*) FROM gristmill_ready r WHERE r.queue = q.number AND r.delayed = 1),
       (SELECT count(*) FROM gristmill_task t WHERE t.queue = q.number AND t.blocked = 1),
       (SELECT count(*) FROM gristmill_shown t
         WHERE t.queue = q.number AND t.place < 2 AND NOT t.blocked AND NOT t.in_order),
       (SELECT count(*) FROM gristmill_task t WHERE t.queue = q.number AND t.place = 2),
       (SELECT count(*) FROM gristmill_done d WHERE d.queue = q.number)
  FROM gristmill_queue q ORDER BY q.number;
