# Ends a server that nobody uses any more, and removes its folder.
#
# $1 the run's folder   $2 the lock that users hold   $3 seconds of grace
# $4 pg_ctl
#
# A user holds the lock, shared, for as long as it lives: the kernel frees it
# when the user is killed. Whoever comes while we stop the server waits for the
# lock, then finds the folder gone and starts another.
run=$1 lock=$2 grace=$3 pg_ctl=$4

# Says that there is a watchdog; held until this process ends. We wait for it,
# because whoever asks whether there is one holds it for a moment.
exec 8>>"$run/watchdog.lock" || exit 1
flock -w 5 -x 8 || exit 1

# Whoever started us waits for this before it starts the server.
echo stands
exec >/dev/null

# One that a killed test had frozen hears no signal but this.
thaw() {
    pid=$(head -n 1 "$run/data/postmaster.pid" 2>/dev/null) || return 0
    for one in $(cat "/proc/$pid/task/$pid/children" 2>/dev/null) "$pid"; do
        kill -CONT "$one" 2>/dev/null
    done
}
stop() { thaw; "$pg_ctl" stop -s -w -t 30 -m immediate -D "$run/data" >/dev/null 2>&1; }

while [ -d "$run" ]; do
    sleep 1 8>&-
    exec 9<"$lock" || exit 0
    if flock -n -x 9; then
        now=$(date +%s)
        used=$(stat -c %Y "$run/used" 2>/dev/null || echo "$now")
        if [ $((now - used)) -ge "$grace" ]; then
            [ ! -f "$run/pgbouncer.pid" ] || kill "$(cat "$run/pgbouncer.pid")" 2>/dev/null
            # A user that was killed while it started the server leaves one that
            # says where it is a moment later.
            stop || { sleep 2; stop; }
            rm -rf "$run"
            # Without grace the lock is of one user, and nobody waits for it.
            [ "$grace" -ne 0 ] || rm -f "$lock"
            exit 0
        fi
    fi
    exec 9<&-
done
