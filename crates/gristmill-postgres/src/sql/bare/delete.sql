DELETE FROM gristmill_bare WHERE id = ANY ($1) AND token = $2
