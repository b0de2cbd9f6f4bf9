SELECT chores, oldest_transaction, now FROM gristmill.due_chores($1)
