UPDATE offer SET batch = NULL WHERE batch = ?1
