SELECT ready + delayed + blocked, processing, failed_now FROM gristmill_count WHERE queue = ?1;
