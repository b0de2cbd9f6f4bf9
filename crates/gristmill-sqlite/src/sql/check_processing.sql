SELECT id FROM gristmill_shown WHERE place < 2 AND NOT blocked AND NOT in_order;
