-- Twenty thousand of each: delayed at a more urgent priority, blocked in front,
-- of another source, failed, and due.
INSERT INTO gristmill.task (id, queue, priority, run_at, created_at, delayed, payload)
SELECT nextval('gristmill.task_id'), q.number, -5, now() + interval '1 day', now(), true, 'x'
  FROM gristmill.queue q, generate_series(1, 20000);
INSERT INTO gristmill.task (id, queue, priority, run_at, created_at, blocked, key, payload)
SELECT nextval('gristmill.task_id'), q.number, -1, now() - interval '1 day', now(), true,
       'k' || g, 'x'
  FROM gristmill.queue q, generate_series(1, 20000) g;
INSERT INTO gristmill.flight (queue, key, id)
SELECT q.number, 'k' || g, -g FROM gristmill.queue q, generate_series(1, 20000) g;
INSERT INTO gristmill.failed (id, queue, priority, run_at, created_at, failed_at, payload)
SELECT nextval('gristmill.task_id'), q.number, -9, now() - interval '1 day', now(), now(), 'x'
  FROM gristmill.queue q, generate_series(1, 20000);
INSERT INTO gristmill.task (id, queue, priority, run_at, created_at, source, payload)
SELECT nextval('gristmill.task_id'), q.number, 0, now() - interval '2 hours', now(), 'theirs', 'x'
  FROM gristmill.queue q, generate_series(1, 20000) WHERE q.name = 'sourced';
INSERT INTO gristmill.task (id, queue, priority, run_at, created_at, source, payload)
SELECT nextval('gristmill.task_id'), q.number, 0, now() - interval '1 hour', now(), 'mine', 'x'
  FROM gristmill.queue q, generate_series(1, 20000);
ANALYZE gristmill.task;
