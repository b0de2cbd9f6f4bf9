INSERT INTO gristmill.meta (store_id) VALUES ('{id}')
