// epoll on epoll on a pipe.
#include "round.h"
#include <sys/epoll.h>

static int outer, inner, ends[2];

static void watch(int epoll, int fd, long data) {
    struct epoll_event event = {EPOLLIN, {.u64 = data}};
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void prepare(void) {
    CHECK((outer = epoll_create1(0)) >= 0 && (inner = epoll_create1(0)) >= 0 && pipe(ends) == 0);
    watch(outer, inner, 1);
    watch(inner, ends[0], 2);
}

static void check(long step) {
    struct epoll_event event;
    char byte;
    CHECK(epoll_wait(outer, &event, 1, 0) == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK(epoll_wait(outer, &event, 1, 0) == 1 && event.data.u64 == 1);
    CHECK(epoll_wait(inner, &event, 1, 0) == 1 && event.data.u64 == 2);
    CHECK(read(ends[0], &byte, 1) == 1);
}
