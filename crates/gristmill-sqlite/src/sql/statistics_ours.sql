SELECT count(*) FROM sqlite_stat1 WHERE substr(tbl, 1, 10) = 'gristmill_';
