-- Lists of one group or one source, of which a million others may stand, in the order of
-- their ids. A task without either is in none of them, and its put costs no more.
CREATE INDEX task_grp_id ON gristmill.task (grp, id) WHERE grp IS NOT NULL;
CREATE INDEX task_source_id ON gristmill.task (source, id) WHERE source IS NOT NULL;
CREATE INDEX failed_grp_id ON gristmill.failed (grp, id) WHERE grp IS NOT NULL;
CREATE INDEX failed_source_id ON gristmill.failed (source, id) WHERE source IS NOT NULL;
