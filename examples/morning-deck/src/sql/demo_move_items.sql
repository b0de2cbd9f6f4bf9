-- As for sources. What a web page lists is known by its address.
UPDATE news_item
   SET url = ?1 || substr(url, 7 + instr(substr(url, 8), '/')),
       guid = iif(guid LIKE 'http://%', ?1 || substr(guid, 7 + instr(substr(guid, 8), '/')), guid)
