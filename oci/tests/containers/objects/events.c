// epoll on an event counter, a timer, a signal descriptor and a pipe that has bytes in it.
#include "round.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static int epoll, counter, timer, signals, ends[2];

static void watch(int fd, unsigned events, long data) {
    struct epoll_event event = {events, {.u64 = data}};
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void prepare(void) {
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &usr1, 0) == 0);
    CHECK((epoll = epoll_create1(EPOLL_CLOEXEC)) >= 0);
    CHECK((counter = eventfd(5, EFD_NONBLOCK)) >= 0);
    CHECK((timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)) >= 0);
    CHECK((signals = signalfd(-1, &usr1, SFD_NONBLOCK)) >= 0);
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], "abc", 3) == 3);
    watch(counter, EPOLLIN, 1L << 40 | 1);
    watch(timer, EPOLLIN, 1L << 40 | 2);
    watch(signals, EPOLLIN, 1L << 40 | 3);
    watch(ends[0], EPOLLIN | EPOLLET, 1L << 40 | 4);
}

static void check(long step) {
    unsigned long value;
    CHECK(read(counter, &value, sizeof value) == sizeof value && value == 5 + step);
    CHECK(eventfd_write(counter, value + 1) == 0);
    struct itimerspec once = {{0, 0}, {0, 1000000}};
    CHECK(timerfd_settime(timer, 0, &once, 0) == 0);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    int seen = 0;
    while ((seen & 7) != 7) {
        struct epoll_event events[4];
        int count = epoll_wait(epoll, events, 4, 10000);
        CHECK(count > 0);
        for (int i = 0; i < count; i++) {
            CHECK(events[i].data.u64 >> 40 == 1);
            seen |= 1 << ((events[i].data.u64 & 7) - 1);
        }
    }
    CHECK(read(timer, &value, sizeof value) == sizeof value && value == 1);
    struct signalfd_siginfo info;
    CHECK(read(signals, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1);
    // The pipe keeps what is in it, in order.
    char bytes[4] = "";
    CHECK(read(ends[0], bytes, 1) == 1 && bytes[0] == 'a' + step % 3);
    CHECK(write(ends[1], bytes, 1) == 1);
}
