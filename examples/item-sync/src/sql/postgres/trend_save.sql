INSERT INTO item_trend (item_id, direction, slope_cents, prices, computed_at)
VALUES ($1, $2, $3, $4, now())
    ON CONFLICT (item_id) DO UPDATE
   SET direction = excluded.direction, slope_cents = excluded.slope_cents,
       prices = excluded.prices, computed_at = excluded.computed_at
