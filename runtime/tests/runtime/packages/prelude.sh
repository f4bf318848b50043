# What scripts have in common.

# await COMMAND…: wait until it succeeds.
await() {
    local n
    for n in {1..1800}; do
        "$@" && return
        sleep 0.1
    done 2>/dev/null
    echo "in vain: $*"
}

# listening PORT: does somebody accept connections there?
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1"); }

# finish: the status of the server that was started last.
finish() {
    wait "$server"
    echo "status $?"
}
