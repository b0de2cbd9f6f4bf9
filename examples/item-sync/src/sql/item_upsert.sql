-- Never REPLACE: that deletes the row first, and its tasks would go with it.
INSERT INTO item (id, name) VALUES (?1, ?2)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE name <> excluded.name;
