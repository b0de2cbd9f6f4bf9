-- Small records beside tasks. A change is one statement that names the version it was
-- made from: whoever comes second finds no such row.

-- name: document_get
SELECT version, body, created_at, changed_at FROM gristmill.document WHERE kind = $1 AND name = $2

-- name: document_list
SELECT name, version, body, created_at, changed_at FROM gristmill.document
 WHERE kind = $1 AND name > $2 ORDER BY name LIMIT $3

-- name: document_make
INSERT INTO gristmill.document (kind, name, version, body, created_at, changed_at)
SELECT $1, $2, 1, $3, n.now, n.now FROM (SELECT coalesce($4, clock_timestamp()) AS now) n
ON CONFLICT DO NOTHING
RETURNING version, created_at, changed_at

-- name: document_change
UPDATE gristmill.document
   SET version = version + 1, body = $3, changed_at = coalesce($4, clock_timestamp())
 WHERE kind = $1 AND name = $2 AND version = $5
RETURNING version, created_at, changed_at

-- name: document_remove
DELETE FROM gristmill.document WHERE kind = $1 AND name = $2 AND version = $3 RETURNING version
