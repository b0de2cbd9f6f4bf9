SELECT number, name, declared, overridden, paused, paused_by, contract, created_at
  FROM gristmill.queue WHERE name = $1
