UPDATE offer SET synced = synced + 1 WHERE ean = ?1
