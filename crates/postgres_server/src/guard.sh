# Guards one server: makes its folder, starts and stops it as standard input says, and at the end of that stops it and
# removes the folder. The input ends with whoever writes it, however that ends, so nothing stays behind.
#
# sh -c THIS guard WHERE PROGRAMS; answers each order with one line.

umask 077
programs=$2
server=
was_killed=
folder=$(mktemp -d "$1/onsale-pg-XXXXXX" 2>&1) || { echo "$folder"; exit 1; }

stop() {
    if [ -n "$server" ]; then
        kill "-$1" "$server" 2>/dev/null
        wait "$server"
        server=
    fi
}

end() {
    stop QUIT
    tries=0
    # A server that was killed leaves shared memory, which the next start takes away. It is refused while processes of the
    # killed one are still ending.
    while [ -n "$was_killed" ] && [ "$tries" -lt 50 ]; do
        if "$programs/postgres" --single -D "$folder/data" postgres; then was_killed=; else sleep 0.1; fi
        tries=$((tries + 1))
    done </dev/null >/dev/null 2>&1
    tries=0
    until rm -rf "$folder" 2>/dev/null || [ "$tries" -ge 50 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}
trap end EXIT
trap 'exit 1' HUP INT TERM

echo "$folder"
while read -r order; do
    case $order in
    make)
        if "$programs/initdb" --no-sync --data-checksums -A trust -U postgres -E UTF8 --locale=C -D "$folder/data" \
            </dev/null >>"$folder/log" 2>&1; then echo made; else echo failed; fi
        ;;
    start)
        "$programs/postgres" -D "$folder/data" </dev/null >>"$folder/log" 2>&1 &
        server=$!
        was_killed=
        echo "$server"
        ;;
    INT | QUIT) # stops in order; stops at once, as a crash would
        stop "$order"
        echo stopped
        ;;
    KILL)
        [ -z "$server" ] || was_killed=yes
        stop KILL
        echo stopped
        ;;
    esac
done
