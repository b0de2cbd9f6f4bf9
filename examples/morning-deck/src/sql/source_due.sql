-- A source that failed waits for its interval like one that was fetched, and
-- is then tried again.
SELECT s.id
  FROM source s JOIN reader r ON r.id = s.reader_id
 WHERE s.status IN ('IDLE', 'ERROR') AND r.credits > 0
   AND max(coalesce(s.fetched_at, 0), iif(s.status = 'ERROR', s.status_at, 0))
       + s.refresh_minutes * 60000000 <= ?1
 ORDER BY coalesce(s.fetched_at, 0), s.id
 LIMIT ?2
