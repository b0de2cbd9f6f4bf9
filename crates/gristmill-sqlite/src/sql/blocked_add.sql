INSERT INTO gristmill_blocked (id) VALUES (?1);
