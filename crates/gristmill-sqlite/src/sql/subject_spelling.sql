-- A template. How the column writes what the key means to it ('042' is 42 to a
-- column of numbers): a text the refusal can name.
SELECT CAST({column} AS TEXT) FROM {table}
 WHERE {column} IN (?1, CAST(?1 AS NUMERIC)) LIMIT 1;
