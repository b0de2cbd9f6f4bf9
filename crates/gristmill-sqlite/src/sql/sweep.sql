-- What time brings, and what statistics would spoil.

-- name: sweep_ids
DELETE FROM gristmill_id WHERE (queue, id) IN (SELECT queue, id FROM gristmill_id WHERE until <= :now LIMIT :limit);

-- name: sweep_done
DELETE FROM gristmill_done WHERE id IN (SELECT id FROM gristmill_done WHERE queue = :queue AND resolved_at <= :until ORDER BY resolved_at LIMIT :limit);

-- name: sweep_failed
SELECT id FROM gristmill_failed WHERE queue = :queue AND failed_at <= :until ORDER BY failed_at LIMIT :limit;

-- name: statistics_known
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'sqlite_stat1';

-- name: statistics_ours
SELECT count(*) FROM sqlite_stat1 WHERE substr(tbl, 1, 10) = 'gristmill_';

-- name: statistics_forget
DELETE FROM sqlite_stat1 WHERE substr(tbl, 1, 10) = 'gristmill_';
