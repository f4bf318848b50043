"""What Python programs do: objects and methods, floats, dictionaries, strings, sorting, JSON, regular expressions."""
import json
import math
import re


class Body:
    def __init__(self, place, speed, mass):
        self.place, self.speed, self.mass = place, speed, mass

    def energy(self):
        return 0.5 * self.mass * sum(v * v for v in self.speed)


def orbits(steps):
    bodies = [Body([math.cos(n), math.sin(n), 0.1 * n], [0.0, 0.1 * n, 0.2], 1.0 + n) for n in range(4)]
    for _ in range(steps):
        for i, a in enumerate(bodies):
            for b in bodies[i + 1:]:
                delta = [p - q for p, q in zip(a.place, b.place)]
                pull = 0.001 / (sum(d * d for d in delta) + 0.01) ** 1.5
                for axis, d in enumerate(delta):
                    a.speed[axis] -= d * b.mass * pull
                    b.speed[axis] += d * a.mass * pull
        for body in bodies:
            body.place = [p + 0.001 * v for p, v in zip(body.place, body.speed)]
    return sum(body.energy() for body in bodies)


def words(count):
    seed, text = 1, []
    for _ in range(count):
        seed = seed * 16807 % 2147483647
        text.append("w%d" % (seed % 997))
    seen = {}
    for word in text:
        seen[word] = seen.get(word, 0) + 1
    best = sorted(seen.items(), key=lambda item: (-item[1], item[0]))[:5]
    return best, len(re.findall(r"w(\d)\1+\b", " ".join(text)))


def queens(n, row=0, columns=0, up=0, down=0):
    if row == n:
        return 1
    free, found = ~(columns | up | down) & ((1 << n) - 1), 0
    while free:
        bit = free & -free
        free ^= bit
        found += queens(n, row + 1, columns | bit, (up | bit) << 1, (down | bit) >> 1)
    return found


def documents(count):
    document = {"name": "tranship", "ports": list(range(40)), "nested": {str(n): [n, n / 7] for n in range(40)}}
    size = 0
    for _ in range(count):
        text = json.dumps(document, sort_keys=True)
        document = json.loads(text)
        size += len(text)
    return size


print("%.12f" % orbits(100000))
print(words(3200000))
print(queens(10))
print(documents(20000))
