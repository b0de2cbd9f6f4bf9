SELECT token, open, length(ids) FROM gristmill_lease WHERE open * 8 <> length(ids) OR open = 0;
