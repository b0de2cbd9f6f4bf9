SELECT id, closed_at IS NOT NULL FROM report WHERE briefing_id = ?1 AND day = ?2
