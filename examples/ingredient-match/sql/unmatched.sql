-- No ingredient has this name, and trying again would not find one: failed
-- now, for a person to look at.
SELECT gristmill.fail(:id, :'token', :'error');
