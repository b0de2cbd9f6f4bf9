DELETE FROM bare WHERE id = ?1 AND token = ?2;
