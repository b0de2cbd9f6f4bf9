UPDATE gristmill_task SET cancel_requested = 1, note = ?2, note_by = ?3 WHERE id = ?1;
