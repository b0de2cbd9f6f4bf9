-- Small records beside tasks.

-- name: document_get
SELECT name, version, body, created_at, changed_at, keep FROM gristmill_document
 WHERE kind = :kind AND name = :name;

-- name: document_list
SELECT name, version, body, created_at, changed_at, keep FROM gristmill_document
 WHERE kind = :kind AND name > :after ORDER BY name LIMIT :limit;

-- name: document_save
INSERT OR REPLACE INTO gristmill_document (kind, name, version, body, created_at, changed_at, keep)
VALUES (:kind, :name, :version, :body, :created_at, :changed_at, :keep);

-- name: document_remove
DELETE FROM gristmill_document WHERE kind = :kind AND name = :name;

-- name: document_forget
DELETE FROM gristmill_document WHERE keep IS NOT NULL AND changed_at < :now - keep;

-- name: document_clamp
-- Nothing was said in the future.
UPDATE gristmill_document SET created_at = min(created_at, :now), changed_at = :now WHERE changed_at > :now;
