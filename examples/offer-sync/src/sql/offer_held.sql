SELECT DISTINCT batch FROM offer WHERE batch IS NOT NULL AND batch <> ?1
