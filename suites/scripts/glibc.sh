# A test says by its status what became of it: 0 passed, 77 cannot be run here, anything else failed. Four at a time, as
# most of them wait.
export RUN TIMEOUTFACTOR=10
ls /suites/glibc/programs/* | xargs -P 4 -I{} sh -c '
    mkdir ${1##*/}
    cd ${1##*/}
    timeout -k 5 100 $RUN "$1" >&2 </dev/null
    printf "%s\tstatus %s\n" "${1##*/}" $?' - {}
