SELECT 1 FROM pragma_table_info(?1) WHERE lower(name) = lower(?2);
