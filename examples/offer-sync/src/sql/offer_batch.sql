SELECT ean, version FROM offer WHERE batch = ?1 AND synced_version < version ORDER BY ean
