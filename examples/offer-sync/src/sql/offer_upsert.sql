INSERT INTO offer (ean, price) VALUES (?1, ?2)
ON CONFLICT (ean) DO UPDATE SET price = excluded.price
