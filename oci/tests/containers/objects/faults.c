// Handlers of faults that have the program go on: they give a page, leave for elsewhere, or step over an instruction.
#include "round.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

static char *page;
static sigjmp_buf elsewhere;
static volatile int seen;

static void fault(int signal, siginfo_t *info, void *context) {
    seen++;
    if (signal == SIGFPE) {
        CHECK(info->si_code == FPE_INTDIV);
        siglongjmp(elsewhere, signal);
    }
    if (signal == SIGILL) {
        // ud2
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
        return;
    }
    if (info->si_addr == (void *)8) {
        CHECK(info->si_code == SEGV_MAPERR);
        siglongjmp(elsewhere, signal);
    }
    CHECK(info->si_addr == page + 40 && info->si_code == SEGV_ACCERR);
    CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void prepare(void) {
    page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSEGV, &action, 0) == 0);
    CHECK(sigaction(SIGFPE, &action, 0) == 0);
    CHECK(sigaction(SIGILL, &action, 0) == 0);
}

static void check(long step) {
    CHECK(seen == 4 * step && page[40] == (char)step);
    *(volatile char *)(page + 40) = step + 1;
    CHECK(seen == 4 * step + 1 && page[40] == (char)(step + 1));
    CHECK(mprotect(page, 4096, PROT_READ) == 0);
    volatile int nothing = 0;
    volatile long *volatile nowhere = (void *)8;
    int signal = sigsetjmp(elsewhere, 1);
    if (signal == 0)
        *nowhere = 1;
    CHECK(signal == SIGSEGV && seen == 4 * step + 2);
    if ((signal = sigsetjmp(elsewhere, 1)) == 0)
        nothing = 7 / nothing;
    CHECK(signal == SIGFPE && seen == 4 * step + 3);
    asm volatile("ud2");
    CHECK(seen == 4 * step + 4);
}
