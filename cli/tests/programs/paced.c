// Code that is hot, and how long it takes: a line of microseconds for each time that it has computed what it has to.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ITERATIONS = 200000, PAUSE = 20000 };

static unsigned compute(unsigned seed) {
    for (int n = 0; n < ITERATIONS; n++) {
        seed = seed * 1664525 + 1013904223;
        // The compiler is not to find out that every call computes the same.
        __asm__ volatile("" : "+r"(seed));
    }
    return seed;
}

static long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int main(void) {
    unsigned first = compute(1);
    for (;;) {
        long before = microseconds();
        if (compute(1) != first)
            abort();
        printf("%ld\n", microseconds() - before);
        fflush(stdout);
        usleep(PAUSE);
    }
}
