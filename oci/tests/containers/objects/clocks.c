// A thread that is in the vDSO every other moment: its clock never goes backwards.
#include "round.h"
#include <pthread.h>

static volatile long rounds, backwards, work;

static void *watch(void *nothing) {
    struct timespec last = {0, 0}, now;
    for (;; rounds++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        backwards += now.tv_sec < last.tv_sec || (now.tv_sec == last.tv_sec && now.tv_nsec < last.tv_nsec);
        last = now;
        for (int i = 0; i < 30; i++)
            work++;
    }
    return 0;
}

static void prepare(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, 0, watch, 0) == 0);
}

static void check(long step) {
    for (long before = rounds; rounds == before;)
        usleep(100);
    CHECK(backwards == 0);
}
