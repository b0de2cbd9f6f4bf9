-- What time brings (function/watch.sql).

-- name: due_chores
SELECT chores, oldest_transaction, now FROM gristmill.due_chores($1)

-- name: do_chore
SELECT done, more, woken FROM gristmill.do_chore($1, $2)

-- name: count_undue
SELECT queue, level, run_at, id FROM gristmill.count_undue($1, $2, $3, $4, $5, $6)

-- name: fold
SELECT gristmill.fold()
