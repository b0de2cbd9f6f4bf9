-- What the nightly workflow shows: the queue at a glance, then what was
-- claimed more often than five times and so needs a person's eye.
\pset footer off
SELECT queue, ready, processing, failed FROM gristmill.stats() WHERE queue = 'ingredient-match';
\echo 'claimed more than 5 times:'
SELECT t.id, t.key AS line, t.state, t.claims, t.note
  FROM gristmill.tasks t
 WHERE t.queue = 'ingredient-match' AND t.claims > 5
 ORDER BY t.claims DESC, t.id;
