INSERT INTO gristmill_minute (queue, minute, put, done, failed) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (queue, minute) DO UPDATE SET
       put = put + excluded.put, done = done + excluded.done, failed = failed + excluded.failed;
