INSERT INTO gristmill.assignment (term, shares, published_at)
VALUES ($1, $2, coalesce($3, clock_timestamp()))
ON CONFLICT (one) DO UPDATE
   SET term = excluded.term, shares = excluded.shares, published_at = excluded.published_at
