SELECT outcome, id, detail, bind_table, bind_column
  FROM gristmill.import_many($1, $2, $3, $4, $5, $6, $7)
