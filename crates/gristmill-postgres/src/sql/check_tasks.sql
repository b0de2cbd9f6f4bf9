-- A page of tasks with what a reader may stumble over; payloads stay where they
-- are. A queue that is not there hides its tasks from every list.
SELECT t.id, t.queue, q.name::text, t.encoding, t.history::text, t.headers::text,
       t.payload IS NULL OR t.run_at IS NULL OR t.created_at IS NULL OR t.attempts IS NULL
           OR t.claims IS NULL OR t.expiries IS NULL OR t.priority IS NULL
           OR t.unique_active IS NULL AS is_torn
  FROM gristmill.shown t LEFT JOIN gristmill.queue q ON q.number = t.queue
 WHERE t.id > $1
 ORDER BY t.id
 LIMIT $2
