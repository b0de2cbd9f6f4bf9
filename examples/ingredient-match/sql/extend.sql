-- Prolongs the lease of all that was claimed with :token. False when it was lost.
SELECT extended FROM gristmill.extend(:'token', :lease);
