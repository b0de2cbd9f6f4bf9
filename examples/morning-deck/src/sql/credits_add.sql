UPDATE reader SET credits = credits + ?2 WHERE mail = ?1 RETURNING credits
