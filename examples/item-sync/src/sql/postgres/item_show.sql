SELECT name, (SELECT price_cents FROM item_price
               WHERE item_id = item.id ORDER BY id DESC LIMIT 1)
  FROM item WHERE id = $1
