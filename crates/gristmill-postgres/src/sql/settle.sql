SELECT answers, became, run_ats, woken, follow_ups, follow_ids, follow_run_ats, follow_sources,
       follow_details, is_refused, follow_columns, freed
  FROM gristmill.settle_many($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                             $17, $18, $19, $20, $21, $22, $23, $24, $25)
