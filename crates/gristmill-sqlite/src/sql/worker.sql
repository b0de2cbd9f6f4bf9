-- Roles, workers and the manager's word.

-- name: role_get
SELECT leader, term, until, hold FROM gristmill_role WHERE role = :role;

-- name: role_save
INSERT INTO gristmill_role (role, leader, term, until, hold) VALUES (:role, :leader, :term, :until, :hold)
    ON CONFLICT (role) DO UPDATE SET
       leader = excluded.leader, term = excluded.term, until = excluded.until,
       hold = excluded.hold;

-- name: worker_save
INSERT INTO gristmill_worker (id, report, since, seen) VALUES (:id, :report, :now, :now)
    ON CONFLICT (id) DO UPDATE SET report = excluded.report, seen = excluded.seen;

-- name: worker_forget
DELETE FROM gristmill_worker WHERE id = :id;

-- name: worker_all
SELECT report, since, seen FROM gristmill_worker ORDER BY id;

-- name: assignment_get
SELECT term, shares, published_at FROM gristmill_assignment WHERE one = 1;

-- name: assignment_save
INSERT OR REPLACE INTO gristmill_assignment (one, term, shares, published_at) VALUES (1, :term, :shares, :published_at);

-- name: worker_clamp
-- Nobody was heard of in the future.
UPDATE gristmill_worker SET since = min(since, :now), seen = :now WHERE seen > :now;

-- name: assignment_clamp
-- Nor did the manager speak then.
UPDATE gristmill_assignment SET published_at = :now WHERE published_at > :now;
