SELECT gristmill.fold()
