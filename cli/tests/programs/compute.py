"""Rounds of what an interpreter does all day, until SIGTERM or as many as the argument says; prints their number and a
checksum of all."""
import hashlib, json, re, signal, struct, sys, threading

stop = False
def on_term(*_):
    global stop
    stop = True
signal.signal(signal.SIGTERM, on_term)

def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, (a + b) % 10 ** 1500

numbers = fibonacci()

class Item:
    def __init__(self, number):
        self.number, self.parts = number, {}
    def __eq__(self, other):
        return self.number == other.number

def round(n):
    item = Item(n)
    big = next(numbers)
    item.parts["digits"] = str(big)[-20:]
    item.parts["floats"] = [n / 7, n ** 0.5, struct.pack("<d", 1 / (n + 1)).hex()]
    item.parts["words"] = re.findall(r"([0-9])\1", str(big))
    item.parts["sorted"] = sorted((n * k) % 1009 for k in range(40))
    try:
        [][n]
    except IndexError as error:
        item.parts["error"] = str(error)
    results = []
    threads = [threading.Thread(target=lambda k=k: results.append(sum(range(n % 50, 100 + k)))) for k in range(2)]
    [t.start() for t in threads], [t.join() for t in threads]
    item.parts["threads"] = sorted(results)
    text = json.dumps(item.parts, sort_keys=True)
    assert json.loads(text) == item.parts and item == Item(n)
    return text.encode()

limit = int(sys.argv[1]) if len(sys.argv) > 1 else None
checksum, done = hashlib.sha256(), 0
while not stop and done != limit:
    checksum.update(round(done))
    done += 1
print(f"{done} rounds, checksum {checksum.hexdigest()}")
