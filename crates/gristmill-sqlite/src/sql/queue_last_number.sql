SELECT max(number) FROM gristmill_queue;
