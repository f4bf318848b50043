// Has a handler for faults from the start, then works so many times, and faults in between: the handler steps over each.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

static volatile long faults;

// The faulting access is `mov (%rsi), %rax`, of three bytes.
static void step_over(int signal, siginfo_t *info, void *context) {
    (void)signal;
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    faults += (long)info->si_addr == g[REG_RSI];
    g[REG_RIP] += 3, g[REG_RAX] = 7;
}

__attribute__((noinline)) static uint64_t work(uint64_t *words, uint64_t n, uint64_t state) {
    for (uint64_t i = 0; i < n; i++) state = state * 6364136223846793005u + (words[i % 512] ^= state >> 7);
    return state;
}

__attribute__((noinline)) static uint64_t load(void *from) {
    uint64_t value;
    __asm__ volatile("mov (%1), %0" : "=a"(value) : "S"(from));
    return value;
}

int main(int argc, char **argv) {
    static uint64_t words[512];
    struct sigaction action = {.sa_sigaction = step_over, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    char *nothing = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int times = argc > 1 ? atoi(argv[1]) : 1;
    uint64_t state = 1;
    for (int n = 0; n < times; n++) state = work(words, 10000, state) + load(nothing + n % 4096);
    printf("%lx, %ld faults\n", (unsigned long)state, faults);
    return 0;
}
