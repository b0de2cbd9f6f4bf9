UPDATE source SET fetched_at = ?2 WHERE id = ?1
