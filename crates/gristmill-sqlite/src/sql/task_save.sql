UPDATE gristmill_task SET
    place = ?2, blocked = ?3, run_at = ?4, prev_run_at = ?5, attempts = ?6, claims = ?7,
    expiries = ?8, started_releases = ?9, cancel_requested = ?10, claimed_at = ?11,
    settled_token = ?12, failed_at = ?13, error = ?14, history = ?15, note = ?16, note_by = ?17,
    resolved_by = ?18, resolved_at = ?19
 WHERE id = ?1;
