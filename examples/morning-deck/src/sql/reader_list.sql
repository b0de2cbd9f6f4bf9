SELECT r.mail, r.zone, r.credits, (SELECT count(*) FROM source s WHERE s.reader_id = r.id)
  FROM reader r ORDER BY r.id
