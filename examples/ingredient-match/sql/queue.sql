-- The queue. Five attempts, then a person looks: the circuit breaker.
SELECT gristmill.add_queue('ingredient-match', '{"max_attempts": 5}');
