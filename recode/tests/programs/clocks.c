// Four threads do nothing but read clocks, which must not go back; the main thread prints steps.
// usage: clocks STEPS
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4 };
static volatile int done;

static long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void *read_clocks(void *unused) {
    long monotonic = 0, boottime = 0;
    while (!done) {
        long before[] = {monotonic, boottime};
        monotonic = now(CLOCK_MONOTONIC);
        boottime = now(CLOCK_BOOTTIME);
        if (monotonic < before[0] || boottime < before[1])
            exit(1);
    }
    return 0;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    long steps = atol(argv[1]);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, read_clocks, 0);
    for (long step = 0; step < steps; step++) {
        printf("%ld\n", step);
        fflush(stdout);
        nanosleep(&(struct timespec){0, 5000000}, 0);
    }
    done = 1;
    for (long i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    return 0;
}
