SELECT (s.ready + s.delayed + s.blocked + s.processing + s.failed_now)::bigint
  FROM gristmill.queue_stats() s WHERE s.number = $1
