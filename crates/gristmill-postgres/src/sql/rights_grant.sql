GRANT EXECUTE ON FUNCTION gristmill.{function} TO {roles};
