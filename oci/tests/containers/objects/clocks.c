// Threads that are in the vDSO nearly all the time, each in another function: no clock goes backwards.
#include "round.h"
#include <pthread.h>
#include <sys/time.h>

static volatile long rounds[4], backwards;

static long long nanoseconds(struct timespec time) {
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long of_clock(clockid_t clock) {
    struct timespec now;
    CHECK(clock_gettime(clock, &now) == 0);
    return nanoseconds(now);
}

static void *precise(void *count) {
    for (long long last = 0, now;; last = now, ++*(volatile long *)count)
        backwards += (now = of_clock(CLOCK_MONOTONIC)) < last;
    return 0;
}

// What the time of day is; and what it was at the latest tick, which the first is not behind.
static void *day(void *count) {
    struct timeval now;
    for (long long last = 0, tick;; last = now.tv_sec * 1000000LL + now.tv_usec, ++*(volatile long *)count) {
        tick = of_clock(CLOCK_REALTIME_COARSE) / 1000;
        CHECK(gettimeofday(&now, 0) == 0);
        backwards += now.tv_sec * 1000000LL + now.tv_usec < (tick > last ? tick : last);
    }
    return 0;
}

static void *coarse(void *count) {
    for (long long last = 0, now;; last = now, ++*(volatile long *)count)
        backwards += (now = of_clock(CLOCK_MONOTONIC_COARSE)) < last;
    return 0;
}

// Seconds, and a clock that the vDSO leaves to the kernel.
static void *seconds(void *count) {
    for (time_t last = 0, now;; last = now, ++*(volatile long *)count) {
        backwards += (now = time(0)) < last;
        of_clock(CLOCK_THREAD_CPUTIME_ID);
    }
    return 0;
}

static void prepare(void) {
    void *(*const threads[])(void *) = {precise, day, coarse, seconds};
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, 0, threads[i], (void *)&rounds[i]) == 0);
    }
}

static void check(long step) {
    for (int i = 0; i < 4; i++)
        for (long before = rounds[i]; rounds[i] == before;)
            usleep(100);
    CHECK(backwards == 0);
}
