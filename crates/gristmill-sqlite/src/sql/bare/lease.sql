UPDATE bare SET status = 1, token = ?1, until = ?2, attempts = attempts + 1
WHERE id IN (SELECT id FROM bare WHERE queue = 1 AND status = 0 AND run_at <= ?3
             ORDER BY run_at, id LIMIT ?4)
RETURNING id, payload;
