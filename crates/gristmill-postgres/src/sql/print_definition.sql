INSERT INTO gristmill.definition (kind, name, checksum) VALUES ('{kind}', '{name}', '{checksum}');
