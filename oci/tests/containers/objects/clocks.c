// Threads that are almost always in the vDSO: clocks never go backwards for any of them.
#include "round.h"
#include <pthread.h>
#include <time.h>

enum { THREADS = 2 };
static volatile long rounds[THREADS], backwards;

static void *watch(void *place) {
    volatile long *round = place;
    struct timespec last = {0, 0}, now;
    for (;; ++*round) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec < last.tv_sec || (now.tv_sec == last.tv_sec && now.tv_nsec < last.tv_nsec))
            backwards++;
        last = now;
    }
    return 0;
}

static void prepare(void) {
    pthread_t thread;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread, 0, watch, (void *)&rounds[i]) == 0);
}

static void check(long step) {
    for (int i = 0; i < THREADS; i++) {
        long before = rounds[i];
        while (rounds[i] == before)
            usleep(100);
    }
    CHECK(backwards == 0);
}
