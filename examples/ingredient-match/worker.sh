#!/bin/sh
# A worker in the shell: claims lines of one source, or of all, lets the database match
# them, and settles each. Ends when nothing is due; on SIGTERM or Ctrl-C the line in
# hand is finished and the others are given back.
#
#   DATABASE_URL=postgres://... ./worker.sh [SOURCE]
set -eu
cd "$(dirname "$0")"
source=${1-}
worker="sh-$(hostname)-$$"
run() { psql -X -q -A -t -v ON_ERROR_STOP=1 -v "worker=$worker" "$@" "$DATABASE_URL"; }
settle() {
    if [ -z "$4" ]; then
        run -v "id=$1" -v "token=$2" -v "error=$5" -f sql/unmatched.sql >/dev/null
        echo "line $3: $5"
    else
        answer=$(run -v "id=$1" -v "token=$2" -v "line_id=$3" -v "ingredient=$4" -f sql/matched.sql)
        echo "line $3: ingredient $4 ($answer)"
    fi
}

stop=
trap 'stop=yes' TERM INT
while [ -z "$stop" ]; do
    claimed=$(run -v "source=$source" -v limit=5 -v "lease=${LEASE_SECONDS:-180}" \
        -f sql/claim_matched.sql)
    [ -n "$claimed" ] || exit 0
    while IFS='|' read -r id token line ingredient error; do
        [ -n "$stop" ] || [ -z "${SLOW_SECONDS-}" ] || sleep "$SLOW_SECONDS" || :
        if [ -n "$stop" ]; then
            run -v "id=$id" -v "token=$token" -f sql/release.sql >/dev/null
        else
            settle "$id" "$token" "$line" "$ingredient" "$error"
        fi
    done <<LINES
$claimed
LINES
done
