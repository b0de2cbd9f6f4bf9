-- Two that campaign for a new role meet at its row.
INSERT INTO gristmill.role (role, leader, term, until, hold) VALUES ($1, '', 0, $2, 0)
ON CONFLICT DO NOTHING
