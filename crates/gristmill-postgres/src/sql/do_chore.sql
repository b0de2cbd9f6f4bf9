SELECT done, more, woken FROM gristmill.do_chore($1, $2)
