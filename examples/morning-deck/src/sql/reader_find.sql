SELECT id FROM reader WHERE mail = ?1
