SELECT queue, number, paused, capacity, oldest_ready, now, ready, delayed, blocked, processing,
       failed_now, done_kept, put, duplicate, replaced, refused, claimed, done, retried, failed,
       released, expired, lease_lost, cancelled, discarded, resolved, operator_retried,
       subject_gone
  FROM gristmill.queue_stats($1)
