# A case is a line of the Test Anything Protocol, by its name if that is one word or else its number; and each program,
# as not all speak it: its status, and how often it says that something is good or bad. One at a time: some measure.
for program in /suites/kernel/programs/*; do
    name=${program##*/}
    mkdir $name
    cd $name
    echo "== $name" >&2
    timeout -k 5 120 $RUN "$program" >../said </dev/null
    status=$?
    cd ..
    cat said >&2
    awk -v program=$name -v status=$status '
        /^(not )?ok [0-9]/ {
            result = /# SKIP/ ? "skipped" : /^not/ ? "not ok" : "ok"
            sub(/^(not )?ok /, "")
            print program " " (NF == 2 ? $2 : $1) "\t" result
        }
        /^\[OK\]/ { good++ }
        /^\[FAIL\]/ { bad++ }
        END { printf "%s\tstatus %s, %d good, %d bad\n", program, status, good, bad }
    ' said
done
