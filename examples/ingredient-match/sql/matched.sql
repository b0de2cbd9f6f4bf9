-- Writes the match and completes the task in one transaction: either both
-- stand or neither does. If the lease went to another worker meanwhile,
-- nothing is written, because the other one will write it.
BEGIN;
UPDATE recipe_line
   SET ingredient = :ingredient, matched_by = :'worker', matched_at = now()
 WHERE id = :line_id;
SELECT gristmill.complete(:id, :'token') AS answer \gset
SELECT :'answer' = 'recorded' AS recorded \gset
\if :recorded
COMMIT;
\else
ROLLBACK;
\endif
\echo :answer
