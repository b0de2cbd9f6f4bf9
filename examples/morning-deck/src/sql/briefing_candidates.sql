-- Everything that may be due; the clock in the reader's zone decides. A report
-- that was begun and is not closed has to be finished first: its worker is gone.
SELECT b.id, r.zone, b.at, b.weekday, b.created_at, b.last_day,
       (SELECT min(p.day) FROM report p
         WHERE p.briefing_id = b.id AND p.closed_at IS NULL AND b.status = 'ACTIVE')
  FROM briefing b JOIN reader r ON r.id = b.reader_id
 WHERE b.status IN ('ACTIVE', 'ERROR') AND r.credits > 0
 ORDER BY b.id
