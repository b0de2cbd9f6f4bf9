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
