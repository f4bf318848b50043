// Works on 64 MB of memory, round after round: so many rounds, or until SIGUSR1. Prints how many there were and what came
// of them; so a second run of as many rounds has to print the same.
// usage: ballast [ROUNDS]
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 8 << 20 };

static volatile sig_atomic_t stop;

static void stopped(int signal) { stop = 1; }

int main(int argc, char **argv) {
    uint64_t *memory = malloc(WORDS * sizeof *memory), sum = 1;
    long limit = argc > 1 ? atol(argv[1]) : -1, round = 0;
    signal(SIGUSR1, stopped);
    for (long i = 0; i < WORDS; i++)
        memory[i] = i * 0x9e3779b97f4a7c15;
    for (; round != limit && !stop; round++)
        for (long i = 0; i < WORDS; i++)
            sum = (sum ^ (memory[i] += sum)) * 0x100000001b3;
    printf("%ld rounds: %016lx\n", round, sum);
    return 0;
}
