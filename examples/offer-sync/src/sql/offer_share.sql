-- Rows leave this result as they are synced, so an offset would pass over some.
-- Each slot has its own share instead, whatever the others have finished.
SELECT ean FROM offer
WHERE synced = 0 AND ((ean % 65521) * 40503 / 16) % ?2 = ?3
ORDER BY ean LIMIT ?1
