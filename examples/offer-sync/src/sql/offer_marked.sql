-- Only by the task that has it in hand, and only the price that was sent: another
-- run of the batch marks nothing again, and an offer that changed meanwhile stays due.
UPDATE offer SET synced = synced + 1, synced_version = ?2, batch = NULL
WHERE ean = ?1 AND batch = ?3 AND version = ?2 AND synced_version < ?2
