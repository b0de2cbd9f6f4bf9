SELECT name FROM gristmill_queue;
