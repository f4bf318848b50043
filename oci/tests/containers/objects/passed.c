// A descriptor under way in a unix socket: the end of a pipe that nobody has otherwise.
#include "round.h"
#include <sys/socket.h>

static int pair[2], ends[2];

static void pass(int fd) {
    char space[CMSG_SPACE(sizeof(int))];
    struct msghdr message = {.msg_iov = &(struct iovec){"fd", 2}, .msg_iovlen = 1};
    message.msg_control = space, message.msg_controllen = sizeof space;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    CHECK(sendmsg(pair[0], &message, 0) == 2);
}

static int taken(void) {
    char space[CMSG_SPACE(sizeof(int))], bytes[2];
    struct msghdr message = {.msg_iov = &(struct iovec){bytes, 2}, .msg_iovlen = 1};
    message.msg_control = space, message.msg_controllen = sizeof space;
    CHECK(recvmsg(pair[1], &message, MSG_CMSG_CLOEXEC) == 2 && memcmp(bytes, "fd", 2) == 0);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    CHECK(header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int)));
    int fd;
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

static void prepare(void) {
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && pipe(ends) == 0);
    pass(ends[1]);
    // It is nowhere else.
    CHECK(close(ends[1]) == 0);
}

static void check(long step) {
    char byte = step, got;
    int writer = taken();
    CHECK(write(writer, &byte, 1) == 1 && read(ends[0], &got, 1) == 1 && got == byte);
    pass(writer);
    CHECK(close(writer) == 0);
}
