-- A template. The first condition can use an index of the column whatever its
-- type; the second makes sure that the key is the text a deletion looks for
-- ('042' is not the subject 42).
SELECT 1 FROM {table}
 WHERE {column} IN (?1, CAST(?1 AS NUMERIC)) AND CAST({column} AS TEXT) = ?1 LIMIT 1;
