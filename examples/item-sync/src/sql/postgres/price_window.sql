-- The newest prices of an item, newest first.
SELECT id, price_cents FROM item_price WHERE item_id = $1 ORDER BY id DESC LIMIT $2
