-- Gives a task back that was not begun: another worker has it at once, and the claim
-- costs no attempt.
SELECT gristmill.release(:id, :'token', started => false);
