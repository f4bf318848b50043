$RUN /usr/bin/python3 - <<'PY'
import hashlib, json, os, re, signal, subprocess, sys, threading, time
print(json.dumps({n: hashlib.sha256(str(n).encode()).hexdigest()[:8] for n in range(5)}))
print(re.findall(r"a+(?=b)", "aabaaab"), 2 ** 100, 1 / 3, os.uname().machine)
done = []
threads = [threading.Thread(target=lambda n=n: done.append(sum(range(n)))) for n in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
print(sorted(done))
try:
    subprocess.run(["/nonexistent"])
except FileNotFoundError as error:
    print(error)
print(subprocess.run(["/bin/echo", "child"], capture_output=True).stdout)
signal.signal(signal.SIGALRM, signal.default_int_handler)
for wait in (lambda: time.sleep(60), lambda: [None for _ in iter(int, 1)]):
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        wait()
    except KeyboardInterrupt:
        print("interrupted")
PY
