-- Roles, workers and the manager's word.

-- name: role_get
SELECT leader, term, until, hold FROM gristmill_role WHERE role = ?1;

-- name: role_save
INSERT INTO gristmill_role (role, leader, term, until, hold) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (role) DO UPDATE SET
       leader = excluded.leader, term = excluded.term, until = excluded.until,
       hold = excluded.hold;

-- name: worker_save
INSERT INTO gristmill_worker (id, report, since, seen) VALUES (?1, ?2, ?3, ?3)
    ON CONFLICT (id) DO UPDATE SET report = excluded.report, seen = excluded.seen;

-- name: worker_forget
DELETE FROM gristmill_worker WHERE id = ?1;

-- name: worker_all
SELECT report, since, seen FROM gristmill_worker ORDER BY id;

-- name: assignment_get
SELECT term, shares, published_at FROM gristmill_assignment WHERE one = 1;

-- name: assignment_save
INSERT OR REPLACE INTO gristmill_assignment (one, term, shares, published_at) VALUES (1, ?1, ?2, ?3);

-- name: worker_clamp
-- Nobody was heard of in the future.
UPDATE gristmill_worker SET since = min(since, ?1), seen = ?1 WHERE seen > ?1;

-- name: assignment_clamp
-- Nor did the manager speak then.
UPDATE gristmill_assignment SET published_at = ?1 WHERE published_at > ?1;
