// Recursion with small frames, which calls a function with a large one each time.
#include "program.h"

enum { DEPTH = 200000 };

__attribute__((noinline)) static double down(long n) {
    double here = wide();
    return n == 0 ? here : down(n - 1) * 0.5 + here;
}

static unsigned char run(void) {
    for (int n = 0; n < 10; n++)
        values[n] = (quad){n + 1, n, n, n};
    return (unsigned char)down(DEPTH);
}
