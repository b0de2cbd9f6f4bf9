INSERT INTO bare (queue, status, run_at, key, payload) VALUES (1, 0, ?1, ?2, ?3)
ON CONFLICT DO NOTHING;
