SELECT grp, slot FROM gristmill_lease INDEXED BY gristmill_lease_slot WHERE queue = ?1 AND slot IS NOT NULL;
