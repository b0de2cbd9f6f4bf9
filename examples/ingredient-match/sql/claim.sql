-- Up to :limit tasks of one source (an empty one: of all), for :lease seconds. What a crashed worker
-- held comes back with this call, once its lease is over.
SELECT json_build_object('id', id, 'token', token, 'attempt', attempt,
                         'line_id', payload -> 'line_id', 'line', payload -> 'line')
  FROM gristmill.claim('ingredient-match', :limit, :lease, nullif(:'source', ''), :'worker');
