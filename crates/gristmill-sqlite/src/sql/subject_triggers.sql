SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND name IN (?1, ?2) AND lower(tbl_name) = lower(?3);
