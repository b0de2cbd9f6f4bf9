SELECT count(*) FROM offer WHERE synced_version < version
