-- Two that campaign for a new role meet at its row.
INSERT INTO gristmill.role (role, leader, term, until) VALUES ($1, '', 0, $2)
ON CONFLICT DO NOTHING
