UPDATE offer SET taken = taken + 1 WHERE batch = ?1 AND synced_version < version
