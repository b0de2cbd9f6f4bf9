-- Whether the application's table is there, and its column.
SELECT to_regclass($1) IS NOT NULL,
       EXISTS (SELECT 1 FROM pg_attribute a
                WHERE a.attrelid = to_regclass($1) AND a.attname = $2 AND a.attnum > 0
                  AND NOT a.attisdropped)
