SELECT extended, cancelled, lost FROM gristmill.extend_many($1, $2, $3)
