// Recursion: little work between many calls and returns, direct and through pointers.
#include <stdio.h>

#define NOINLINE __attribute__((noinline))

static NOINLINE int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

static NOINLINE int takeuchi(int x, int y, int z) {
    return y >= x ? z : takeuchi(takeuchi(x - 1, y, z), takeuchi(y - 1, z, x), takeuchi(z - 1, x, y));
}

static NOINLINE int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

static NOINLINE int queens(unsigned all, unsigned columns, unsigned left, unsigned right) {
    if (columns == all) return 1;
    int solutions = 0;
    for (unsigned free = all & ~(columns | left | right); free; free &= free - 1) {
        unsigned place = free & -free;
        solutions += queens(all, columns | place, (left | place) << 1, (right | place) >> 1);
    }
    return solutions;
}

// A binary tree of calls that are all indirect.
typedef long walk(int depth, long sum);
static walk even, odd;
static walk *volatile const steps[2] = {even, odd};

static NOINLINE long even(int depth, long sum) {
    return depth == 0 ? sum : steps[depth & 1](depth - 1, sum + 1) + steps[sum & 1](depth - 1, sum);
}

static NOINLINE long odd(int depth, long sum) {
    return depth == 0 ? -sum : steps[depth & 1](depth - 1, sum + 3) - steps[sum & 1](depth - 1, sum ^ 1);
}

int main(void) {
    printf("fibonacci %d\n", fibonacci(43));
    printf("takeuchi %d\n", takeuchi(22, 12, 4));
    printf("ackermann %d\n", ackermann(3, 11));
    printf("queens %d\n", queens((1 << 13) - 1, 0, 0, 0));
    printf("walk %ld\n", even(26, 1));
}
