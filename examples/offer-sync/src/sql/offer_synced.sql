UPDATE offer SET synced = synced + 1, synced_version = version WHERE ean = ?1
