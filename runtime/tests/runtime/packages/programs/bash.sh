$RUN /bin/bash -c '
a=(1 2 3); echo ${a[@]/%/x} ${#a[@]} $((2 ** 40))
(sleep 0.1; echo in background) & wait
trap "echo trapped" TERM; kill $$
f() { local x=$1; ((x > 0)) && f $((x - 1)) || echo "depth reached"; }; f 100
for i in 1 2 3; do /bin/date -u -d @$i; done
read -t 5 y < <(echo substituted); echo $y
seq 30 | sort -r | head -3 | tr 1 x
/nonexistent; echo $?
[[ abc =~ ^a(.)c$ ]] && echo ${BASH_REMATCH[1]}
coproc cat; echo through >&${COPROC[1]}; read z <&${COPROC[0]}; echo $z; kill $COPROC_PID
ulimit -n; printf "%(%Y)T\n" 0; echo $BASH_VERSION $MACHTYPE; (exit 3); echo $?
{ sleep 60 & kill -INT $!; kill -KILL $!; wait $!; } 2>/dev/null; echo $?
exec -a other /bin/sh -c "echo \$0; exit 4"'
echo "status $?"
