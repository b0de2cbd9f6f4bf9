SELECT chores, oldest_transaction FROM gristmill.due_chores($1)
