# Three processes that keep an account for each client: one that clients connect to, one that has the totals and is reached by a
# unix socket, and one that writes every change down and is reached by a socket pair.
import asyncio
import os
import socket

STORE = "/tmp/store.sock"
JOURNAL = "/tmp/journal"


def journal(store):
    with open(JOURNAL, "a+") as file:
        while message := store.recv(256):
            who, _, number = message.decode().partition(" ")
            if number:
                print(who, number, file=file, flush=True)
                continue
            file.seek(0)
            lines = [line.split() for line in file]
            store.send(b"%d" % sum(int(number) for name, number in lines if name == who))


async def store(listener, journal):
    totals = {}

    async def serve(reader, writer):
        while line := await reader.readline():
            who, number = line.split()
            if number == b"?":
                journal.send(who)
                writer.write(journal.recv(64) + b"\n")
                continue
            totals[who] = totals.get(who, 0) + int(number)
            journal.send(b"%s %s" % (who, number))
            writer.write(b"%d\n" % totals[who])

    server = await asyncio.start_unix_server(serve, sock=listener)
    await server.serve_forever()


async def front():
    async def serve(reader, writer):
        answers, questions = await asyncio.open_unix_connection(STORE)
        while line := await reader.readline():
            questions.write(line)
            writer.write(await answers.readline())

    server = await asyncio.start_server(serve, "0.0.0.0", 7000)
    await server.serve_forever()


ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
if os.fork() == 0:
    ours.close()
    journal(theirs)
    os._exit(0)
theirs.close()
listener = socket.socket(socket.AF_UNIX)
listener.bind(STORE)
listener.listen()  # before anybody can come to the first process, which connects here
if os.fork() == 0:
    asyncio.run(store(listener, ours))
    os._exit(0)
ours.close()
listener.close()
asyncio.run(front())
