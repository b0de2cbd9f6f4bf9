SELECT r.mail, b.title, b.at, r.zone, b.weekday, b.last_day, b.created_at
  FROM briefing b JOIN reader r ON r.id = b.reader_id
 ORDER BY b.id
