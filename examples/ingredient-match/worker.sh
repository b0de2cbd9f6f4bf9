#!/bin/sh
# A worker in the shell: claims lines of one source, lets the database match
# them, and settles each. Ends when nothing is due.
#
#   DATABASE_URL=postgres://... ./worker.sh [SOURCE]
set -eu
cd "$(dirname "$0")"
source=${1:-manual}
worker="sh-$(hostname)-$$"
run() { psql -X -q -A -t -v ON_ERROR_STOP=1 -v "worker=$worker" "$@" "$DATABASE_URL"; }

while :; do
    claimed=$(run -v "source=$source" -v limit=5 -v "lease=${LEASE_SECONDS:-180}" \
        -f sql/claim_matched.sql)
    [ -n "$claimed" ] || exit 0
    printf '%s\n' "$claimed" | while IFS='|' read -r id token line ingredient error; do
        if [ -z "$ingredient" ]; then
            run -v "id=$id" -v "token=$token" -v "error=$error" -f sql/unmatched.sql >/dev/null
            echo "line $line: $error"
        else
            answer=$(run -v "id=$id" -v "token=$token" -v "line_id=$line" \
                -v "ingredient=$ingredient" -f sql/matched.sql)
            echo "line $line: ingredient $ingredient ($answer)"
        fi
    done
done
