DELETE FROM gristmill_worker WHERE seen < ?1;
