#!/bin/sh
# The nightly workflow: brings back what crashed workers held, on request sends
# failed tasks back with a note for the audit, and shows what needs an eye.
#
#   DATABASE_URL=postgres://... [QUEUE_RETRY_FAILED=true] ./nightly.sh
set -eu
cd "$(dirname "$0")"
run() { psql -X -q -v ON_ERROR_STOP=1 "$DATABASE_URL" "$@"; }

run -A -t <<'SQL'
SELECT gristmill.requeue_expired('ingredient-match') || ' taken back from crashed workers';
SQL
# Whatever else time brings: no Gristmill process runs here.
run -c 'SELECT * FROM gristmill.maintain()' >/dev/null
if [ "${QUEUE_RETRY_FAILED:-false}" = true ]; then
    run -A -t <<'SQL'
SELECT gristmill.retry_failed('ingredient-match', 'Retry requested by nightly workflow')
       || ' failed tasks sent back';
SQL
fi
run -f sql/report.sql
