-- An earlier day's report that nobody closed is closed along: what it could not
-- deliver is not sent behind this one.
UPDATE report
   SET closed_at = coalesce(closed_at, ?3),
       mailed_at = iif(day = ?2 AND ?4, ?3, mailed_at)
 WHERE briefing_id = ?1 AND day <= ?2 AND (closed_at IS NULL OR day = ?2)
