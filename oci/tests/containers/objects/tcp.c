// TCP over the container's own loopback: who listens, and a connection with bytes under way in both directions.
#include "round.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static int listener, client, server, datagrams;
static struct sockaddr_in address = {.sin_family = AF_INET};

static int connected(int *other) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && connect(fd, (void *)&address, sizeof address) == 0);
    CHECK((*other = accept(listener, 0, 0)) >= 0);
    return fd;
}

static void prepare(void) {
    CHECK((datagrams = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
    address.sin_port = htons(7000);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(datagrams, (void *)&address, sizeof address) == 0);
    CHECK((listener = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    CHECK(bind(listener, (void *)&address, sizeof address) == 0 && listen(listener, 5) == 0);
    client = connected(&server);
    CHECK(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0);
    CHECK(setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int)) == 0);
    CHECK(write(client, "abc", 3) == 3 && write(server, "xyz", 3) == 3);
}

static void check(long step) {
    char byte, bytes[9];
    CHECK(read(server, &byte, 1) == 1 && byte == 'a' + step % 3 && write(client, &byte, 1) == 1);
    CHECK(read(client, &byte, 1) == 1 && byte == 'x' + step % 3 && write(server, &byte, 1) == 1);
    int value;
    socklen_t size = sizeof value;
    CHECK(getsockopt(client, IPPROTO_TCP, TCP_NODELAY, &value, &size) == 0 && value);
    CHECK(getsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &value, &size) == 0 && value);
    CHECK(getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value);
    struct sockaddr_in peer;
    size = sizeof peer;
    CHECK(getpeername(client, (void *)&peer, &size) == 0 && memcmp(&peer, &address, 8) == 0);
    // CRIU takes no connection along that is not accepted, and no datagrams: there are none where it may come between.
    if (!is_fresh)
        return;
    int other, fd = connected(&other);
    CHECK(write(fd, "new", 3) == 3 && read(other, bytes, 9) == 3 && memcmp(bytes, "new", 3) == 0);
    CHECK(close(fd) == 0 && read(other, bytes, 9) == 0 && close(other) == 0);
    CHECK(sendto(datagrams, "self", 4, 0, (void *)&address, sizeof address) == 4);
    CHECK(read(datagrams, bytes, 9) == 4);
}
