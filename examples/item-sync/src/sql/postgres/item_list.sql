SELECT item.id, item.name,
       (SELECT price_cents FROM item_price
         WHERE item_id = item.id ORDER BY id DESC LIMIT 1),
       (SELECT direction FROM item_trend WHERE item_id = item.id),
       (SELECT count(*) FROM item_anomaly WHERE item_id = item.id)
  FROM item ORDER BY item.id LIMIT $1
