SELECT reclaimed, promoted, unblocked, forgotten_ids, pruned_done, pruned_failed, forgotten_workers,
       failed, oldest_transaction
  FROM gristmill.sweep($1, $2, $3, $4, $5)
