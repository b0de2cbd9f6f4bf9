UPDATE briefing SET last_executed_at = ?2, last_day = max(coalesce(last_day, ''), ?3) WHERE id = ?1
