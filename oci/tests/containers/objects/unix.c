// Unix sockets, named ones and a pair, with bytes and datagrams under way, and a connection that nobody has accepted.
#include "round.h"
#include <sys/socket.h>
#include <sys/un.h>

static int listener, box, pair[2], messages[2], waiting;

static struct sockaddr_un named(const char *path) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strcpy(name.sun_path, path);
    return name;
}

static int bound(int type, const char *path) {
    struct sockaddr_un name = named(path);
    int fd = socket(AF_UNIX, type, 0);
    CHECK(fd >= 0 && bind(fd, (void *)&name, sizeof name) == 0);
    return fd;
}

static int connected(int type, const char *path) {
    struct sockaddr_un name = named(path);
    int fd = socket(AF_UNIX, type, 0);
    CHECK(fd >= 0 && connect(fd, (void *)&name, sizeof name) == 0);
    return fd;
}

static void prepare(void) {
    listener = bound(SOCK_STREAM, "/tmp/listener");
    CHECK(listen(listener, 5) == 0);
    box = bound(SOCK_DGRAM, "/tmp/box");
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, messages) == 0);
    CHECK(write(pair[0], "abc", 3) == 3);
    CHECK(write(messages[0], "one", 3) == 3 && write(messages[0], "three", 5) == 5);
    int out = connected(SOCK_DGRAM, "/tmp/box");
    CHECK(write(out, "first", 5) == 5 && write(out, "2nd", 3) == 3);
    waiting = connected(SOCK_STREAM, "/tmp/listener");
}

static void check(long step) {
    char bytes[9] = "";
    CHECK(read(pair[1], bytes, 1) == 1 && bytes[0] == 'a' + step % 3);
    CHECK(write(pair[0], bytes, 1) == 1);
    const char *message = step % 2 ? "three" : "one", *datagram = step % 2 ? "2nd" : "first";
    long size = read(messages[1], bytes, 9);
    CHECK(size == strlen(message) && memcmp(bytes, message, size) == 0);
    CHECK(write(messages[0], message, size) == size);
    CHECK((size = read(box, bytes, 9)) == strlen(datagram) && memcmp(bytes, datagram, size) == 0);
    int out = connected(SOCK_DGRAM, "/tmp/box");
    CHECK(write(out, datagram, size) == size && close(out) == 0);
    // Whoever waited is served, and the next one waits. (It has sent nothing: CRIU would not dump that.)
    int served = accept(listener, 0, 0);
    CHECK(served >= 0 && write(waiting, "hello", 5) == 5);
    CHECK(read(served, bytes, 5) == 5 && memcmp(bytes, "hello", 5) == 0);
    CHECK(write(served, "bye", 3) == 3 && read(waiting, bytes, 9) == 3 && memcmp(bytes, "bye", 3) == 0);
    CHECK(close(served) == 0 && close(waiting) == 0);
    waiting = connected(SOCK_STREAM, "/tmp/listener");
}
