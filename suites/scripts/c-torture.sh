# A program is right if it ends with status 0; what it prints is compared by its digest.
for program in /suites/c-torture/programs/*; do
    case $program in *.object) continue ;; esac
    name=${program##*/}
    case $engine in
        compiled) output=$(timeout 60 ${RUN% --} --object 9 -- "$program" 9<"$program.object" 2>&1 </dev/null) ;;
        *) output=$(timeout 60 $RUN "$program" 2>&1 </dev/null) ;;
    esac
    printf '%s\tstatus %s, output %s\n' "$name" $? "$(cksum <<<"${output//"$program"/}")"
done 2>/dev/null
