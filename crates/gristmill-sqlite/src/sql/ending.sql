-- What came of tasks.

-- name: ending_get
SELECT ending, encoding, value, error, until FROM gristmill_ending WHERE id = :id;

-- name: ending_want
INSERT INTO gristmill_ending (id, queue, ending, until) VALUES (:id, :queue, 'open', :until)
ON CONFLICT (id) DO NOTHING;

-- name: ending_open_among
SELECT 1 FROM gristmill_ending WHERE ending = 'open' AND id BETWEEN :first AND :last LIMIT 1;

-- name: ending_save
INSERT INTO gristmill_ending (id, queue, ending, encoding, value, error, until)
VALUES (:id, :queue, :ending, :encoding, :value, :error, :until)
ON CONFLICT (id) DO UPDATE SET ending = excluded.ending, encoding = excluded.encoding,
    value = excluded.value, error = excluded.error, until = excluded.until;

-- name: ending_due
SELECT id, ending = 'open' AS is_open FROM gristmill_ending WHERE until <= :now ORDER BY until, id LIMIT :limit;

-- name: ending_look_again
UPDATE gristmill_ending SET until = :until WHERE id = :id;

-- name: ending_forget
DELETE FROM gristmill_ending WHERE id = :id;

-- name: ending_clamp
UPDATE gristmill_ending SET until = :longest WHERE queue = :queue AND until > :longest;

-- name: ending_all
SELECT id, ending, encoding, value, error FROM gristmill_ending WHERE id > :from ORDER BY id LIMIT :limit;
