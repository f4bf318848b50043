// What every program here is: it makes a kernel object, and then says, step by step, that it still is what it was.
// Lines are the numbers of steps, one after the other, or what has failed.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Ends the program if it does not hold, and says so.
#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            printf("failed: %s (%s:%d, %s)\n", #condition, __FILE__, __LINE__, strerror(errno)); \
            fflush(stdout);                                                              \
            _exit(1);                                                                    \
        }                                                                                \
    } while (0)

// Once, before the first step.
static void prepare(void);
// At every step, before it is counted.
static void check(long step);

// Whether the program has just been started or restored: for some steps it is left alone then.
static int is_fresh __attribute__((unused));

// With an argument, what is executed in the container beside the program: it says that, and 3 is its status.
int main(int count, char **words) {
    if (count == 2)
        return puts(words[1]) < 0 ? 1 : 3;
    prepare();
    struct timespec before = {}, now;
    for (long step = 0;; step++) {
        CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
        is_fresh = (now.tv_sec - before.tv_sec) * 1000 + (now.tv_nsec - before.tv_nsec) / 1000000 > 50;
        before = now;
        check(step);
        printf("%ld\n", step);
        fflush(stdout);
        usleep(20000);
    }
}
