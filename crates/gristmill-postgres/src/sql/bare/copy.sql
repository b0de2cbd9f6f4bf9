COPY gristmill_bare (key, payload) FROM STDIN (FORMAT binary)
