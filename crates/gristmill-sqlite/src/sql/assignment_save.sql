INSERT OR REPLACE INTO gristmill_assignment (one, term, shares, published_at) VALUES (1, ?1, ?2, ?3);
