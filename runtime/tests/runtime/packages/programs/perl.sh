$RUN /usr/bin/perl -e '
my %h; $h{$_ % 7} += $_ for 1..1000; print map { "$_ $h{$_}\n" } sort keys %h;
printf "%.12f %s\n", sqrt(2), join ",", map { sprintf "%x", $_ } unpack "C*", pack "Nv", 1, 2;
(my $t = "a man a plan") =~ s/(\w+)/\u$1/g; print "$t\n";
$SIG{USR1} = sub { print "caught\n" }; kill USR1 => $$;
my $pid = open my $pipe, "-|"; if (!$pid) { print "from the child\n"; exit 3 } print <$pipe>; close $pipe; print $? >> 8, "\n";
print `echo shell; exit 2`; print $? >> 8, "\n"; system("/nonexistent") == -1 and print "$!\n";'
