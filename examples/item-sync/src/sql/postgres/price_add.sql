INSERT INTO item_price (item_id, price_cents) VALUES ($1, $2)
