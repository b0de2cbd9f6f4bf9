-- Takes in new lines and puts a task for each, in one transaction: a line
-- never stands without its task, nor a task without its line. Lines that are
-- known are passed over, so the same file may come again.
BEGIN;
CREATE TEMPORARY TABLE incoming (recipe text, line text) ON COMMIT DROP;
\copy incoming FROM pstdin WITH (FORMAT csv)
WITH fresh AS (
    INSERT INTO recipe_line (recipe, line, source)
    SELECT recipe, line, :'source' FROM incoming
    ON CONFLICT (recipe, line) DO NOTHING
    RETURNING id, line
), listed AS (
    SELECT coalesce(array_agg(jsonb_build_object('line_id', id, 'line', line) ORDER BY id), '{}') AS payloads,
           coalesce(array_agg(id::text ORDER BY id), '{}') AS keys
      FROM fresh
)
SELECT count(put.id) || ' lines put'
  FROM listed, gristmill.enqueue_many('ingredient-match', payloads, keys, source => :'source') put;
COMMIT;
