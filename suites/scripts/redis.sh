# The server, and the programs of redis that tests start, are translated; the clients are Tcl.
cp -r /suites/redis /tmp/redis
cd /tmp/redis
for unit in type/incr type/string type/list-2 type/hash type/set type/stream-cgroups; do
    timeout 900 tclsh tests/test_helper.tcl --clients 1 --no-latency --single unit/$unit </dev/null >log
    printf '%s\tstatus %s\n' $unit $?
    # [ok]: NAME (12 ms), in colour.
    sed -n "s/\x1b\[[0-9;]*m//g; s/ ([0-9]* ms)$//; s|^\[\([a-z]*\)\]: \(.*\)|$unit: \2\t\1|p" log | grep -v '	\(testing\|done\|ready\)$'
    cat log >&2
done
