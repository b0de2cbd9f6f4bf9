SELECT number, queue, worker, claimed_at, until, slot, ids FROM gristmill_lease;
