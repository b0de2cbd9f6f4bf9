UPDATE process SET checks = checks + 1 WHERE id = ?1
