-- What is not synced and in nobody's hands, first of the slot's own share: there
-- nobody else looks as long as there is some. Of the others' shares afterwards, so
-- that no batch goes empty while there is anything to do.
UPDATE offer SET batch = ?1
WHERE ean IN (
    SELECT ean FROM offer
    WHERE synced_version < version AND batch IS NULL
    ORDER BY ((ean % 65521) * 40503 / 16) % ?3 <> ?4, ean
    LIMIT max(0, ?2 - (SELECT count(*) FROM offer WHERE batch = ?1))
)
