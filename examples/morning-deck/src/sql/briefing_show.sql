SELECT b.id, b.title, b.by_mail, r.mail
  FROM briefing b JOIN reader r ON r.id = b.reader_id
 WHERE b.id = ?1
