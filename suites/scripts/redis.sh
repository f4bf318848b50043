# The server, and the programs of redis that tests start, are translated; the clients are Tcl.
cp -r /suites/redis /tmp/redis
cd /tmp/redis
for unit in $(sed -n 's|^ *\(unit/[a-z0-9/-]*\)$|\1|p' tests/test_helper.tcl); do
    timeout 3000 tclsh tests/test_helper.tcl --clients 1 --no-latency --single $unit </dev/null >log
    printf '%s\tstatus %s\n' $unit $?
    # [ok]: NAME (12 ms), in colour.
    sed -n "s/\x1b\[[0-9;]*m//g; s/ ([0-9]* ms)$//; s|^\[\([a-z]*\)\]: \(.*\)|$unit: \2\t\1|p" log | grep -v '	\(testing\|done\|ready\)$'
    cat log >&2
done
