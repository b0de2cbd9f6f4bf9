-- A change makes it due again, whoever had the last version in hand.
INSERT INTO offer (ean, price) VALUES (?1, ?2)
ON CONFLICT (ean) DO UPDATE SET price = excluded.price, version = version + 1, batch = NULL
