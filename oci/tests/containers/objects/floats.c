// Floating point: ways to round, a sum that needs all bits of x87, and registers of a child that loops without a call.
#include "round.h"
#include <fpu_control.h>
#include <immintrin.h>
#include <sys/mman.h>

static volatile struct {
    long asked;
    double answers[3];
} *shared;
static volatile long double sum = 1;

// Holds values in registers until step `next` is asked for.
static void hold(double value, long next) {
    double x87 = value, first = value + 1, last = value + 2;
    asm volatile("fldl %0\n"
                 "movsd %1, %%xmm0\n"
                 "movsd %2, %%xmm15\n"
                 "1: cmpq %4, %3\n"
                 "jl 1b\n"
                 "fstpl %0\n"
                 "movsd %%xmm0, %1\n"
                 "movsd %%xmm15, %2\n"
                 : "+m"(x87), "+m"(first), "+m"(last)
                 : "m"(shared->asked), "r"(next)
                 : "xmm0", "xmm15", "cc", "memory");
    shared->answers[1] = first;
    shared->answers[2] = last;
    shared->answers[0] = x87;
}

static void prepare(void) {
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    // x87 rounds up and SSE down, which also takes denormals for zero.
    fpu_control_t control = _FPU_RC_UP | _FPU_EXTENDED | 0x3f;
    _FPU_SETCW(control);
    _mm_setcsr(_mm_getcsr() | _MM_DENORMALS_ZERO_ON);
    _MM_SET_ROUNDING_MODE(_MM_ROUND_DOWN);
    if (fork() == 0)
        for (long step = 1;; step++)
            hold(step * 10, step);
}

static void check(long step) {
    volatile double one = 1, three = 3, tiny = 0x1p-1050;
    CHECK(one / three < 1 / 3.0L && one / three * 3.0L < 1 && tiny * 0x1p100 == 0);
    volatile long double wide = 1;
    CHECK(wide / 3 * 3 > 1);
    CHECK(_MM_GET_ROUNDING_MODE() == _MM_ROUND_DOWN);
    CHECK(sum == 1 + step * 0x1p-60L);
    sum += 0x1p-60L;
    shared->asked = step + 1;
    while (shared->answers[0] != (step + 1) * 10)
        usleep(500);
    CHECK(shared->answers[1] == (step + 1) * 10 + 1 && shared->answers[2] == (step + 1) * 10 + 2);
}
