-- Each piece of news is on one kind of source, and both readers have them all.
SELECT count(*) / 2 FROM news_item WHERE guid NOT LIKE 'early-%' AND url NOT LIKE '%/about'
