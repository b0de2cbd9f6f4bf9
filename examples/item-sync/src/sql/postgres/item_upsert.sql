INSERT INTO item (id, name) VALUES ($1, $2)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE item.name <> excluded.name
