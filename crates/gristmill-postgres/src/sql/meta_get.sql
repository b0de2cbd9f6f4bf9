SELECT store_id::text FROM gristmill.meta
