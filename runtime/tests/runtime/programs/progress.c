// Works and waits by turns, and prints a line after each, so that it can be stopped anywhere.
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Calls, floating point, the heap, and a checksum over all of it.
static double work(int depth, double x, uint64_t *sum) {
    char *piece = malloc(depth * 10 + 1);
    memset(piece, depth, depth * 10);
    for (int n = 0; n < depth * 10; n++) *sum = *sum * 31 + piece[n];
    double result = depth ? work(depth - 1, x * 1.5 + 1 / (x + depth), sum) + sqrt(x) : x;
    free(piece);
    return result;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 10, pause = argc > 2 ? atoi(argv[2]) : 0;
    uint64_t sum = 1;
    double value = 0.5;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int round = 0; round < rounds; round++) {
        for (int n = 0; n < 20; n++) value = fmod(work(40, value, &sum), 3.0);
        printf("%d %016lx %.17g\n", round, (unsigned long)sum, value);
        if (pause) nanosleep(&(struct timespec){pause / 1000, pause % 1000 * 1000000L}, NULL);
    }
    char line[100];
    while (argc > 3 && fgets(line, sizeof line, stdin)) printf("read %s", line);
    return 5;
}
