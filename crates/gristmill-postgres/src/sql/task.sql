-- Tasks for a person or a program to read, and operators' steps on them.

-- name: get
SELECT t.state, t.id, q.name AS queue, t.key, t.grp, t.source, t.priority, t.run_at, t.created_at,
       t.blocked, t.unique_active, t.attempts, t.claims, t.expiries, t.encoding, t.prev_run_at,
       t.claimed_at, t.error, t.history::text, t.note, t.note_by, t.failed_at, t.resolved_by,
       t.resolved_at, t.headers::text, t.settings::text, t.payload, t.worker, t.until, t.slot, t.cancel_requested,
       t.progress::text,
       CASE WHEN t.claims > 0 THEN (SELECT c.state FROM gristmill.checkpoint c
                                     WHERE c.id = t.id) END AS checkpoint
  FROM gristmill.shown t JOIN gristmill.queue q ON q.number = t.queue
 WHERE t.id = $1

-- name: endings
SELECT ending, is_wanted, encoding, value, error FROM gristmill.endings(p_ids => $1, p_now => $2)

-- name: open_under
SELECT l.open FROM gristmill.lease l WHERE l.token = $1

-- name: find
-- Each place by its own index; failed ones many a key.
SELECT k.key, k.id, k.place, k.state
  FROM (SELECT t.key, t.id, 0 AS place, 'pending' AS state FROM gristmill.task t
         WHERE t.queue = $1 AND t.key = ANY ($2) AND NOT t.in_flight
        UNION ALL
        SELECT f.key, f.id, 1, CASE WHEN EXISTS (SELECT 1 FROM gristmill.task t WHERE t.id = f.id)
                                    THEN 'pending' ELSE 'processing' END
          FROM gristmill.flight f WHERE f.queue = $1 AND f.key = ANY ($2)
        UNION ALL
        SELECT t.key, t.id, 2, 'failed' FROM gristmill.failed t
         WHERE t.queue = $1 AND t.key = ANY ($2)) k
 ORDER BY k.key, k.id

-- name: look
SELECT ids, next, looked
  FROM gristmill.look(
       p_from => $1, p_newest => $2, p_limit => $3, p_looks => $4, p_states => $5,
       p_queue => $6, p_key => $7, p_grp => $8, p_source => $9, p_error => $10,
       p_claims_over => $11, p_stood_at => $12, p_blocked => $13, p_by => $14, p_later => $15,
       p_most => $16)

-- name: list
SELECT t.state, t.id, q.name AS queue, t.key, t.grp, t.source, t.priority, t.run_at, t.created_at,
       t.blocked, t.unique_active, t.attempts, t.claims, t.expiries, t.encoding, t.prev_run_at,
       t.claimed_at, t.error, t.history::text, t.note, t.note_by, t.failed_at, t.resolved_by,
       t.resolved_at, t.headers::text, t.settings::text, t.payload, t.worker, t.until, t.slot, t.cancel_requested,
       t.progress::text,
       CASE WHEN t.claims > 0 THEN (SELECT c.state FROM gristmill.checkpoint c
                                     WHERE c.id = t.id) END AS checkpoint
  FROM gristmill.shown t JOIN gristmill.queue q ON q.number = t.queue
 WHERE t.id = ANY ($1) AND t.state = ANY ($2)

-- name: operate
SELECT u.id, o.answer, o.other, o.state, q.name AS woken
  FROM unnest($2) WITH ORDINALITY AS u (id, position)
 CROSS JOIN LATERAL gristmill.operate_one(
      p_action => $1, p_id => u.id, p_by => $3, p_note => $4,
      p_now => coalesce($5, clock_timestamp()),
      p_start => CASE WHEN $7 IS NULL THEN $6
          ELSE gristmill.later(coalesce($5, clock_timestamp()), $7 * interval '1 microsecond') END) o
  LEFT JOIN gristmill.queue q ON q.number = o.woken
 ORDER BY u.position
