# A process for each module, as CPython's own runner has them; programs that tests start are translated with them.
cat >../cases.py <<'END'
import os, sys, unittest
from test import support

# Tests print, too: that is for the log.
lines = os.fdopen(os.dup(1), "w", 1)
os.dup2(2, 1)
# No network but the loopback, nothing that takes long: -u none of CPython's runner.
support.use_resources = []

# The worst first: with subtests, a case can be more than one.
KINDS = {"errors": "ERROR", "failures": "FAIL", "unexpectedSuccesses": "unexpected success",
         "expectedFailures": "expected failure", "skipped": "skipped"}

def say(test, result):
    print(test.id().removeprefix("test."), result, sep="\t", file=lines)

class Result(unittest.TextTestResult):
    def startTest(self, test):
        self.before = {kind: len(getattr(self, kind)) for kind in KINDS}
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        say(test, next((word for kind, word in KINDS.items() if len(getattr(self, kind)) > self.before[kind]), "ok"))

tests = unittest.defaultTestLoader.loadTestsFromName("test." + sys.argv[1])
result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(tests)
# What is prepared for a class or a module is no case, unless it fails.
for kind in "errors", "skipped":
    for test, why in getattr(result, kind):
        if not isinstance(test, unittest.TestCase):
            say(test, KINDS[kind])
sys.exit(not result.wasSuccessful())
END
# Sockets of virtual machines lead out of this one, and wait there for ever.
[ ! -e /dev/vsock ] || mount --bind /dev/null /dev/vsock

for module in int float math struct json re threading socket signal subprocess; do
    mkdir $module
    cd $module
    timeout -k 10 1200 $RUN /usr/bin/python3.11 /tmp/cases.py test_$module </dev/null
    printf 'test_%s\tstatus %s\n' $module $?
    cd ..
done
