-- Every task for a person to read, in the sqlite3 shell or any other tool: the
-- queue by its name, the state in a word, times as they are written everywhere,
-- the payload as JSON where it is one. The columns are those of the view `tasks`
-- of a PostgreSQL store. Programs of the store read gristmill_shown.
CREATE VIEW gristmill_tasks AS
WITH every (id, queue, state, blocked, key, grp, source, priority, attempts, claims, expiries,
            error, encoding, payload, headers, settings, created_at, run_at, claimed_at, cancel_requested,
            failed_at, note, note_by, resolved_by, resolved_at, history, lease) AS (
    -- Attempts and claims do not count the running one where they are kept.
    SELECT s.id, s.queue,
           CASE WHEN s.place = 2 THEN 'failed' WHEN s.blocked OR s.in_order THEN 'pending'
                ELSE 'processing' END,
           s.blocked, s.key, s.grp, s.source, s.priority,
           s.attempts + (s.place < 2 AND NOT s.blocked AND NOT s.in_order),
           s.claims + (s.place < 2 AND NOT s.blocked AND NOT s.in_order), s.expiries, s.error,
           s.encoding, (SELECT t.payload FROM gristmill_task t WHERE t.id = s.id), s.headers,
           CASE WHEN json_valid(s.settings) THEN s.settings END, s.created_at, s.run_at, s.claimed_at, s.cancel_requested, s.failed_at, s.note,
           s.note_by, s.resolved_by, s.resolved_at, s.history,
           -- The lease that holds it: eight bytes a task stand side by side there.
           CASE WHEN s.place < 2 AND NOT s.blocked AND NOT s.in_order THEN
               (SELECT l.number FROM gristmill_lease l
                 WHERE l.queue = s.queue
                   AND (instr(hex(l.ids), printf('%016X', s.id)) + 15) % 16 = 0
                   AND instr(hex(l.ids), printf('%016X', s.id)) > 0) END
      FROM gristmill_shown s
    UNION ALL
    SELECT d.id, d.queue, 'done', 0, d.key, d.grp, d.source, d.priority, d.attempts, d.claims,
           d.expiries, d.error, d.encoding, d.payload, d.headers,
           CASE WHEN json_valid(d.settings) THEN d.settings END, d.created_at, d.run_at,
           d.claimed_at, 0, d.failed_at, d.note, d.note_by, d.resolved_by, d.resolved_at,
           d.history, NULL
      FROM gristmill_done d
)
SELECT e.id, q.name AS queue, e.state, e.blocked, e.key, e.grp AS "group", e.source, e.priority,
       e.attempts, e.claims, e.expiries, e.error,
       CASE WHEN e.encoding = 0 AND json_valid(CAST(e.payload AS TEXT))
            THEN CAST(e.payload AS TEXT) END AS payload,
       e.headers,
       -- What is its own, not its queue's; spans in seconds.
       e.settings ->> '$.timeout' / 1e6 AS timeout,
       CASE json_type(e.settings, '$.max_attempts') WHEN 'null' THEN 'unlimited'
            ELSE CAST(e.settings ->> '$.max_attempts' AS TEXT) END AS max_attempts,
       CASE WHEN e.settings -> '$.backoff' IS NOT NULL
            THEN json_object('base', e.settings ->> '$.backoff.base' / 1e6,
                             'cap', e.settings ->> '$.backoff.cap' / 1e6,
                             'jitter', json(e.settings -> '$.backoff.jitter')) END AS backoff,
       strftime('%Y-%m-%dT%H:%M:%S', e.created_at / 1000000, 'unixepoch')
           || printf('.%06dZ', e.created_at % 1000000) AS created_at,
       strftime('%Y-%m-%dT%H:%M:%S', e.run_at / 1000000, 'unixepoch')
           || printf('.%06dZ', e.run_at % 1000000) AS run_at,
       strftime('%Y-%m-%dT%H:%M:%S', coalesce(l.claimed_at, e.claimed_at) / 1000000, 'unixepoch')
           || printf('.%06dZ', coalesce(l.claimed_at, e.claimed_at) % 1000000) AS claimed_at,
       l.worker,
       strftime('%Y-%m-%dT%H:%M:%S', l.until / 1000000, 'unixepoch')
           || printf('.%06dZ', l.until % 1000000) AS lease_until,
       -- How far it is, as its handler says.
       CASE WHEN json_valid(l.progress) THEN l.progress -> ('$."' || e.id || '"') END AS progress,
       e.cancel_requested,
       strftime('%Y-%m-%dT%H:%M:%S', e.failed_at / 1000000, 'unixepoch')
           || printf('.%06dZ', e.failed_at % 1000000) AS failed_at,
       e.note, e.note_by, e.resolved_by,
       strftime('%Y-%m-%dT%H:%M:%S', e.resolved_at / 1000000, 'unixepoch')
           || printf('.%06dZ', e.resolved_at % 1000000) AS resolved_at,
       l.slot, e.history, e.payload AS raw,
       (SELECT substr(t.checkpoint, 9) FROM gristmill_task t WHERE t.id = e.id) AS checkpoint,
       (SELECT CASE WHEN r.encoding = 0 AND json_valid(CAST(substr(r.value, 9) AS TEXT))
                     THEN CAST(substr(r.value, 9) AS TEXT) END
          FROM gristmill_ending r WHERE r.id = e.id) AS result
  FROM every e
  JOIN gristmill_queue q ON q.number = e.queue
  LEFT JOIN gristmill_lease l ON l.number = e.lease;

-- What came of tasks, as long as it is kept: their end, what their handler returned as
-- JSON where it is one (value always has the bytes), or the last error.
CREATE VIEW gristmill_results AS
SELECT e.id, q.name AS queue, e.ending AS state,
       CASE WHEN e.encoding = 0 AND json_valid(CAST(substr(e.value, 9) AS TEXT))
            THEN CAST(substr(e.value, 9) AS TEXT) END AS result,
       e.error,
       strftime('%Y-%m-%dT%H:%M:%S', e.until / 1000000, 'unixepoch')
           || printf('.%06dZ', e.until % 1000000) AS kept_until,
       substr(e.value, 9) AS value
  FROM gristmill_ending e
  JOIN gristmill_queue q ON q.number = e.queue
 WHERE e.ending <> 'open';
