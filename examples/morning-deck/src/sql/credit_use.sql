-- Never below nothing: without a credit no row changes.
UPDATE reader SET credits = credits - 1
 WHERE credits > 0
   AND id = (SELECT s.reader_id FROM source s JOIN news_item i ON i.source_id = s.id WHERE i.id = ?1)
