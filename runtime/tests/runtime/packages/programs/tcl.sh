$RUN /usr/bin/tclsh8.6 <<'TCL'
puts [expr {2 ** 70}]
puts [exec echo child | tr a-z A-Z]
after 10 {set done 1}
vwait done
puts [list $done [string map {a b} banana] [catch {exec false} message] $message]
TCL
