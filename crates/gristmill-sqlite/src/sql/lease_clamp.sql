-- No lease lasts longer than its length: the clock that says so was ahead.
UPDATE gristmill_lease SET until = ?1 + length WHERE until > ?1 + length;
