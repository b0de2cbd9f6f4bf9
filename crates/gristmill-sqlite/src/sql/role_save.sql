INSERT INTO gristmill_role (role, leader, term, until, hold) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (role) DO UPDATE SET
       leader = excluded.leader, term = excluded.term, until = excluded.until,
       hold = excluded.hold;
