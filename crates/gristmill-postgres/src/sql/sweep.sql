-- What time brings (function/watch.sql).

-- name: due_chores
SELECT chores, oldest_transaction, now, quiet FROM gristmill.due_chores(p_now => $1)

-- name: do_chore
SELECT done, more, woken FROM gristmill.do_chore(p_chore => $1, p_now => $2)

-- name: count_undue
SELECT queue, level, run_at, id FROM gristmill.count_undue(
      p_queue => $1, p_level => $2, p_run_at => $3, p_id => $4, p_limit => $5, p_now => $6)

-- name: fold
SELECT gristmill.fold()

-- name: cut_ahead
-- What a clock that was ahead wrote down beside leases and tasks: minutes that have
-- not come, callers' ids, windows of keys and endings that would last for longer than their queue says, and
-- workers and a manager who spoke in the future.
WITH clock AS (
    SELECT coalesce($1, clock_timestamp()) AS now
), minutes AS (
    DELETE FROM gristmill.minute m USING clock c WHERE m.at > c.now
), ids AS (
    UPDATE gristmill.put_id i SET until = gristmill.later(c.now, q.id_window)
      FROM clock c, gristmill.queue q
     WHERE q.number = i.queue AND i.until > gristmill.later(c.now, q.id_window)
), windows AS (
    UPDATE gristmill.key_window w
       SET until = gristmill.later(c.now, coalesce(q.unique_for, interval '0'))
      FROM clock c, gristmill.queue q
     WHERE q.number = w.queue
       AND w.until > gristmill.later(c.now, coalesce(q.unique_for, interval '0'))
), endings AS (
    UPDATE gristmill.ending e
       SET until = gristmill.later(c.now, greatest(interval '10 minutes',
                       coalesce(q.keep_result, q.keep_done)))
      FROM clock c, gristmill.queue q
     WHERE q.number = e.queue
       AND e.until > gristmill.later(c.now, greatest(interval '10 minutes',
                         coalesce(q.keep_result, q.keep_done)))
)
UPDATE gristmill.document d SET created_at = least(d.created_at, c.now), changed_at = c.now
  FROM clock c WHERE d.changed_at > c.now
