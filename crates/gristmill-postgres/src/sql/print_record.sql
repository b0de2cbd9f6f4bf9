INSERT INTO gristmill.migration (version, checksum) VALUES ({version}, '{checksum}');
