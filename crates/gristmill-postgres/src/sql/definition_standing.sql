SELECT definitions, program FROM gristmill.meta
