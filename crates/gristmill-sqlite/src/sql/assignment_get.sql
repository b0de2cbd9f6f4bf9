SELECT term, shares, published_at FROM gristmill_assignment WHERE one = 1;
