INSERT INTO report (briefing_id, day, created_at) VALUES (?1, ?2, ?3)
