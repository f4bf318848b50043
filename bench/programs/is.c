// After the public description of the NAS kernel IS ("integer sort"), class B: ten rankings of 2^25 keys by
// counting, with two keys changed before each; then the keys are put in order and checked.
#include "random.h"
#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 1 << 25, MAX_KEY = 1 << 21, RANKINGS = 10 };

static int keys[KEYS], sorted[KEYS], ranks[MAX_KEY];

static void make_keys(void) {
    uint64_t x = 314159265;
    for (int i = 0; i < KEYS; i++) {
        double sum = 0;
        for (int j = 0; j < 4; j++) sum += random_next(&x);
        keys[i] = (int)(MAX_KEY / 4 * sum);
    }
}

// Afterwards `ranks[k]` is the number of keys up to and with k.
static void rank(int iteration) {
    keys[iteration] = iteration;
    keys[iteration + RANKINGS] = MAX_KEY - iteration;
    for (int k = 0; k < MAX_KEY; k++) ranks[k] = 0;
    for (int i = 0; i < KEYS; i++) ranks[keys[i] & (MAX_KEY - 1)]++;
    for (int k = 1; k < MAX_KEY; k++) ranks[k] += ranks[k - 1];
}

int main(void) {
    make_keys();
    unsigned long checksum = 0;
    for (int iteration = 1; iteration <= RANKINGS; iteration++) {
        rank(iteration);
        for (int k = 0; k < MAX_KEY; k += 4099) checksum = checksum * 31 + (unsigned)ranks[k];
    }
    for (int i = KEYS - 1; i >= 0; i--) sorted[--ranks[keys[i] & (MAX_KEY - 1)]] = keys[i] & (MAX_KEY - 1);
    for (int i = 1; i < KEYS; i++)
        if (sorted[i - 1] > sorted[i]) {
            printf("key %d is out of order\n", i);
            return 1;
        }
    printf("%lx\n", checksum);
}
