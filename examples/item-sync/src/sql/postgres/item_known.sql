-- No row: the item is new. NULL: it has no price yet.
SELECT (SELECT price_cents FROM item_price
         WHERE item_id = item.id ORDER BY id DESC LIMIT 1)
  FROM item WHERE id = $1
