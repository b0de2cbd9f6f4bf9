-- Small records beside tasks. A change is one statement that names the version it was
-- made from: whoever comes second finds no such row.

-- name: document_get
SELECT name, version, body, created_at, changed_at, keep, coalesce($3, clock_timestamp()) AS now
  FROM gristmill.document WHERE kind = $1 AND name = $2

-- name: document_lock
SELECT name, version, body, created_at, changed_at, keep, coalesce($3, clock_timestamp()) AS now
  FROM gristmill.document WHERE kind = $1 AND name = $2 FOR UPDATE

-- name: document_list
SELECT name, version, body, created_at, changed_at, keep, coalesce($4, clock_timestamp()) AS now
  FROM gristmill.document WHERE kind = $1 AND name > $2 ORDER BY name LIMIT $3

-- name: document_make
INSERT INTO gristmill.document (kind, name, version, body, created_at, changed_at, keep)
SELECT $1, $2, 1, $3, n.now, n.now, $5 FROM (SELECT coalesce($4, clock_timestamp()) AS now) n
ON CONFLICT DO NOTHING
RETURNING version, created_at, changed_at

-- name: document_change
UPDATE gristmill.document d
   SET version = d.version + 1, body = $3, created_at = least(d.created_at, n.now),
       changed_at = n.now, keep = $5
  FROM (SELECT coalesce($4, clock_timestamp()) AS now) n
 WHERE d.kind = $1 AND d.name = $2 AND d.version = $6
RETURNING d.version, d.created_at, d.changed_at

-- name: document_put
INSERT INTO gristmill.document AS d (kind, name, version, body, created_at, changed_at, keep)
SELECT $1, $2, 1, $3, n.now, n.now, $5 FROM (SELECT coalesce($4, clock_timestamp()) AS now) n
ON CONFLICT (kind, name) DO UPDATE
   SET version = d.version + 1, body = excluded.body, keep = excluded.keep,
       created_at = least(d.created_at, excluded.changed_at), changed_at = excluded.changed_at
RETURNING d.version, d.created_at, d.changed_at

-- name: document_remove
DELETE FROM gristmill.document WHERE kind = $1 AND name = $2 AND version = coalesce($3, version)
RETURNING version
