// Prints the steps of a computation that needs all of its state: integers, floats, heap and the position in its output.
// usage: counter STEPS
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
    long steps = atol(argv[1]);
    double *history = malloc(steps * sizeof *history);
    unsigned long state = 88172645463325252ul;
    long double sum = 0;
    for (long step = 0; step < steps; step++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        history[step] = (state >> 11) * 0x1p-53;
        sum += history[state % (step + 1)];
        printf("%ld %016lx %.15Lf\n", step, state, sum);
        fflush(stdout);
        nanosleep(&(struct timespec){0, 5000000}, 0);
    }
    return 0;
}
