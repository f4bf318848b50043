// The pseudo-random numbers of the NAS Parallel Benchmarks: x' = a x mod 2^46, as a fraction in (0, 1).
#include <stdint.h>

static const uint64_t RANDOM_MASK = (1ull << 46) - 1;
static const uint64_t RANDOM_STEP = 1220703125; // 5^13

static double random_next(uint64_t *x) {
    *x = *x * RANDOM_STEP & RANDOM_MASK;
    return (double)*x * 0x1p-46;
}
