// Code that is hot: in the program, in a child that it has, and, where it is executed with two arguments, in as many rounds
// as the second one says.
#include "round.h"

enum { ITERATIONS = 2000000 };

static int questions[2], answers[2];

static unsigned compute(unsigned seed) {
    for (int n = 0; n < ITERATIONS; n++)
        seed = seed * 1664525 + 1013904223;
    return seed;
}

// What it has to be: the constants' powers, by squaring.
static unsigned expected(unsigned seed) {
    unsigned factor = 1664525, summand = 1013904223;
    for (int left = ITERATIONS; left; left >>= 1) {
        if (left & 1)
            seed = seed * factor + summand;
        summand *= factor + 1;
        factor *= factor;
    }
    return seed;
}

__attribute__((constructor)) static void begin(int count, char **words) {
    if (count != 3)
        return;
    for (int round = atoi(words[2]); round; round--)
        CHECK(compute(round) == expected(round));
    exit(puts(words[1]) < 0);
}

static void answer(void) {
    for (unsigned seed;;) {
        CHECK(read(questions[0], &seed, sizeof seed) == sizeof seed);
        seed = compute(seed);
        CHECK(write(answers[1], &seed, sizeof seed) == sizeof seed);
    }
}

static void prepare(void) {
    CHECK(pipe(questions) == 0 && pipe(answers) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        answer();
}

static void check(long step) {
    unsigned seed = step, answer;
    CHECK(compute(seed) == expected(seed));
    CHECK(write(questions[1], &seed, sizeof seed) == sizeof seed);
    CHECK(read(answers[0], &answer, sizeof answer) == sizeof answer && answer == expected(seed));
}
