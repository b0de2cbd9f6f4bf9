INSERT INTO gristmill_lease (token, queue, worker, claimed_at, until, length, grp, slot, open, ids)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);
