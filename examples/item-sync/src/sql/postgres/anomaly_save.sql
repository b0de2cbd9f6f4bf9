INSERT INTO item_anomaly (price_id, item_id, mean_cents, deviations, found_at)
VALUES ($1, $2, $3, $4, now())
    ON CONFLICT (price_id) DO NOTHING
