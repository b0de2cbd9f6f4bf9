SELECT term, shares, published_at FROM gristmill.assignment
