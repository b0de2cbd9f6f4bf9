DROP FUNCTION gristmill.define
