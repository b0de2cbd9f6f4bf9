-- The same claim for a worker that lets the database match: id, token, line,
-- the ingredient it means (empty when there is none), and the words for that.
SELECT id, token, payload ->> 'line_id', match_line(payload ->> 'line'),
       format('no ingredient is called ''%s''', bare_name(payload ->> 'line'))
  FROM gristmill.claim('ingredient-match', :limit, :lease, nullif(:'source', ''), :'worker');
