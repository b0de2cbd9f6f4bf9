-- Prices, trend and anomalies go by foreign key, tasks by the queue's binding.
DELETE FROM item WHERE id = $1
