-- Small records beside tasks.

-- name: document_get
SELECT version, body, created_at, changed_at FROM gristmill_document WHERE kind = :kind AND name = :name;

-- name: document_list
SELECT name, version, body, created_at, changed_at FROM gristmill_document
 WHERE kind = :kind AND name > :after ORDER BY name LIMIT :limit;

-- name: document_save
INSERT OR REPLACE INTO gristmill_document (kind, name, version, body, created_at, changed_at)
VALUES (:kind, :name, :version, :body, :created_at, :changed_at);

-- name: document_remove
DELETE FROM gristmill_document WHERE kind = :kind AND name = :name;
