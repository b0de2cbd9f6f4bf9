-- Roles, workers and the manager's word.

-- name: role_ensure
-- Two that campaign for a new role meet at its row.
INSERT INTO gristmill.role (role, leader, term, until, hold) VALUES ($1, '', 0, $2, 0)
ON CONFLICT DO NOTHING

-- name: role_get
SELECT leader, term, until, hold FROM gristmill.role WHERE role = $1 FOR UPDATE

-- name: role_save
UPDATE gristmill.role SET leader = $2, term = $3, until = $4, hold = $5 WHERE role = $1

-- name: worker_save
INSERT INTO gristmill.worker (id, report, since, seen)
VALUES ($1, $2, coalesce($3, clock_timestamp()), coalesce($3, clock_timestamp()))
ON CONFLICT (id) DO UPDATE SET report = excluded.report, seen = excluded.seen

-- name: worker_forget
DELETE FROM gristmill.worker WHERE id = $1 RETURNING id

-- name: worker_all
SELECT report, since, seen, clock_timestamp() AS now FROM gristmill.worker ORDER BY id

-- name: assignment_save
INSERT INTO gristmill.assignment (term, shares, published_at)
VALUES ($1, $2, coalesce($3, clock_timestamp()))
ON CONFLICT (one) DO UPDATE
   SET term = excluded.term, shares = excluded.shares, published_at = excluded.published_at

-- name: assignment_get
SELECT term, shares, published_at FROM gristmill.assignment
