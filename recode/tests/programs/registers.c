// Holds values in every register that a home CPU may have, for a dump to show: x87, xmm, and ymm, zmm and mask registers
// where they are there.
#include <immintrin.h>
#include <stdio.h>

__attribute__((target("avx512f,avx512bw"))) static void hold_avx512(void) {
    static const char bytes[64] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
    asm volatile("vmovdqu64 %0, %%zmm3\n vmovdqu64 %0, %%zmm21\n kmovq %1, %%k5\n 1: pause\n jmp 1b"
                 ::"m"(bytes), "r"(0x0123456789abcdeful));
}

__attribute__((target("avx"))) static void hold_avx(void) {
    static const char bytes[32] = "0123456789abcdef0123456789abcde";
    asm volatile("vmovdqu %0, %%ymm3\n vmovdqu %0, %%ymm15\n 1: pause\n jmp 1b" ::"m"(bytes));
}

int main(void) {
    puts("holding");
    fflush(stdout);
    asm volatile("fldpi\n fldl2t\n fld1\n std");
    if (__builtin_cpu_supports("avx512bw"))
        hold_avx512();
    if (__builtin_cpu_supports("avx"))
        hold_avx();
    asm volatile("movups %0, %%xmm7\n 1: pause\n jmp 1b" ::"m"(*"0123456789abcde"));
}
