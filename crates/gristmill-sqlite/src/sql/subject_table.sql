SELECT 1 FROM sqlite_schema WHERE type = 'table' AND lower(name) = lower(?1);
