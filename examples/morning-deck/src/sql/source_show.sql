SELECT id, kind, url, fetched_at IS NULL FROM source WHERE id = ?1
