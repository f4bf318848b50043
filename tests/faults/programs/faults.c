// What a guest's handler sees of a fault, and what it may do about it. Every line is to be the same natively.
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf back;
static char *page; // nothing at first
static volatile long before, after;
static int canonical;

static void set(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigaction(signal, &action, NULL);
}

// What the context holds, registers of the C code around it apart.
static void print_context(int signal, siginfo_t *info, ucontext_t *uc) {
    static const int shown[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_R8, REG_R9, REG_R10,
                                REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    greg_t *g = uc->uc_mcontext.gregs;
    printf("signal %d code %d address %#lx trap %lld error %lld cr2 %#llx rip %#llx flags %#llx\n", signal, info->si_code,
           (long)info->si_addr, g[REG_TRAPNO], g[REG_ERR] & ~1, // "present" is not known on every host
           g[REG_CR2], g[REG_RIP], g[REG_EFL] & 0xcd5);
    for (size_t n = 0; n < sizeof shown / sizeof *shown; n++) printf(" %llx", g[shown[n]]);
    struct _libc_fpstate *fp = uc->uc_mcontext.fpregs;
    printf("\n mxcsr %x x87 %x %x", fp->mxcsr, fp->cwd, fp->swd);
    for (int n = 3; n < 16; n += 12) printf(" %08x%08x", fp->_xmm[n].element[0], fp->_xmm[n].element[3]);
    printf(" %x.%x\n before %ld after %ld\n", fp->_st[0].exponent, fp->_st[0].significand[3], before, after);
}

static void show_and_jump(int signal, siginfo_t *info, void *context) {
    print_context(signal, info, context);
    siglongjmp(back, 1);
}

static void show_and_map(int signal, siginfo_t *info, void *context) {
    print_context(signal, info, context);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

// All registers get known values, then `ACCESS` faults between two stores.
#define WITH_STATE(ACCESS, ADDRESS)                                                                                   \
    do {                                                                                                              \
        static const double one = 1.5;                                                                                \
        before = after = 0;                                                                                           \
        __asm__ volatile("fldl %2\n mov $0x1111, %%eax\n mov $0x2222, %%ebx\n mov $0x3333, %%ecx\n mov $0x4444, %%edx\n" \
                         "mov $0x5555, %%esi\n mov $0x8888, %%r8d\n mov $0x9999, %%r9d\n mov $0xaaaa, %%r10d\n"        \
                         "mov $0xbbbb, %%r11d\n mov $0xcccc, %%r12d\n mov $0xdddd, %%r13d\n mov $0xeeee, %%r14d\n"     \
                         "mov $0xffff, %%r15d\n movd %%eax, %%xmm3\n pshufd $0, %%xmm3, %%xmm3\n movd %%r9d, %%xmm15\n"\
                         "movq $1, %0\n add $0x7fffffff, %%eax\n imul $3, %%rbx, %%rbx\n cmp %%ecx, %%edx\n" ACCESS "\n" \
                         "movq $1, %1\n mov $7, %%ecx\n mov $8, %%ebx\n paddd %%xmm3, %%xmm15\n test %%eax, %%eax\n"   \
                         "fstp %%st(0)\n"                                                                             \
                         : "+m"(before), "+m"(after)                                                                  \
                         : "m"(one), "D"(ADDRESS)                                                                     \
                         : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",   \
                           "xmm3", "xmm15", "memory", "cc");                                                          \
    } while (0)

#define ATTEMPT(ACCESS, ADDRESS) \
    if (!sigsetjmp(back, 1)) WITH_STATE(ACCESS, ADDRESS)

static void states(void) {
    set(SIGSEGV, show_and_jump, 0), set(SIGBUS, show_and_jump, 0);
    set(SIGFPE, show_and_jump, 0), set(SIGILL, show_and_jump, 0);
    ATTEMPT("mov 8(%%rdi), %%rdx", page);
    ATTEMPT("mov 8(%%rdi), %%rdi", 16L); // nobody wants what it loads
    ATTEMPT("mov %%rdx, 8(%%rdi)", page);
    // What is only read may be: where nothing is mapped, the error code would say "write" natively only.
    ATTEMPT("addl %%edx, 4(%%rdi)", page + 4096);
    ATTEMPT("lock xadd %%rdx, (%%rdi)", page + 4096);
    ATTEMPT("movups %%xmm3, 4090(%%rdi)", page - 4096);
    ATTEMPT("movups (%%rdi), %%xmm15", page);
    ATTEMPT("movaps 8(%%rdi), %%xmm3", page - 4096); // misaligned
    if (!canonical) ATTEMPT("mov (%%rdi), %%rdx", 1L << 62);
    ATTEMPT("xor %%edi, %%edi\n div %%edi", page);
    ATTEMPT("ud2", page);
    ATTEMPT("mov $12, %%ecx\n lea -64(%%rdi), %%rsi\n rep movsb", page - 4);
    ATTEMPT("mov $3, %%ecx\n lea -20(%%rdi), %%rdi\n rep stosq", page);
    ATTEMPT("mov $600, %%ecx\n lea -1200(%%rdi), %%rsi\n lea -599(%%rdi), %%rdi\n rep movsb", page);
    ATTEMPT("mov $200, %%ecx\n lea -398(%%rdi), %%rdi\n rep stosw", page);
    ATTEMPT("mov $5, %%ecx\n lea 16(%%rdi), %%rdi\n std\n rep movsq\n cld", page - 4096);
    ATTEMPT("fldl -4(%%rdi)", page);
    ATTEMPT("push %%rdi\n mov %%rsp, %%rdi\n xor %%esp, %%esp\n mov %%rdi, %%rsp\n pop %%rdi\n pushq (%%rdi)", page);
}

static int longs;
static __attribute__((noinline)) long sum(long *from, long n) {
    long all = 0;
    for (long i = 0; i < n; i++) all = all * 3 + from[i], longs++;
    return all;
}

static void map_silently(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void retried(void) {
    set(SIGSEGV, show_and_map, 0);
    WITH_STATE("mov 8(%%rdi), %%rdx", page);
    mprotect(page, 4096, PROT_NONE);
    WITH_STATE("mov %%rdx, 8(%%rdi)", page);
    printf("stored %lx\n", ((long *)page)[1]), mprotect(page, 4096, PROT_NONE);
    set(SIGSEGV, map_silently, 0);
    long *from = (long *)page - 40;
    longs = 0;
    for (int n = 0; n < 40; n++) from[n] = n;
    long all = sum(from, 50);
    printf("sum %lx of %d\n", all, longs), mprotect(page, 4096, PROT_NONE);
}

static int step_of(volatile int *nothing, volatile int *step) {
    *step = 1;
    int value = *nothing;
    *step = 2;
    return value;
}

static void jump(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    siglongjmp(back, 1);
}

static void steps(void) {
    volatile int step = 0;
    set(SIGSEGV, jump, SA_NODEFER);
    for (volatile int n = 0; n < 300; n++) {
        step = 0;
        if (!sigsetjmp(back, 0)) step_of((int *)page + n, &step);
        if (step != 1) printf("step %d is %d\n", n, step);
    }
    printf("steps\n");
}

static char other_stack[1 << 16];
static volatile int depth;
static __attribute__((noinline)) int deeper(volatile int *above) {
    volatile int here[64];
    here[5] = *above + 1, depth++;
    return depth < 0 ? 0 : deeper(here + 5) + here[5];
}

static void *overflow(void *unused) {
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&stack, NULL);
    set(SIGSEGV, jump, SA_ONSTACK);
    volatile int first = 0;
    if (!sigsetjmp(back, 1)) deeper(&first);
    printf("overflow: %s\n", depth > 100 ? "deep" : "at once");
    return unused;
}

static long answer = 42;
static long panicked;
__attribute__((used)) static void sigpanic(void) { panicked++; siglongjmp(back, 2); }
// Calls `sigpanic` as if the faulting instruction had: what Go's runtime does on a nil dereference.
static void inject(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    g[REG_RSP] -= 8, *(greg_t *)g[REG_RSP] = g[REG_RIP], g[REG_RIP] = (greg_t)sigpanic;
}

static void repair(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RBX] = (greg_t)&answer;
}

static void changed(void) {
    long value;
    set(SIGSEGV, repair, 0);
    __asm__ volatile("mov $8, %%ebx\n mov (%%rbx), %0" : "=r"(value) : : "rbx");
    set(SIGSEGV, inject, 0);
    for (volatile int n = 0; n < 50; n++)
        if (!sigsetjmp(back, 1)) value += *(volatile long *)(long)n;
    printf("repaired %ld, panicked %ld\n", value, panicked);
}

static void exceptions(void) {
    set(SIGFPE, show_and_jump, 0);
    feenableexcept(FE_DIVBYZERO | FE_INVALID);
    ATTEMPT("xorps %%xmm0, %%xmm0\n divps %%xmm0, %%xmm3", page);
    ATTEMPT("pcmpeqd %%xmm0, %%xmm0\n psrlq $1, %%xmm0\n sqrtsd %%xmm0, %%xmm3\n pcmpeqd %%xmm0, %%xmm0\n psrlq $2, %%xmm0\n"
            "psllq $1, %%xmm0\n cvttsd2si %%xmm0, %%rax\n movd %%xmm0, %%edx", page);
    feclearexcept(FE_ALL_EXCEPT), fedisableexcept(FE_ALL_EXCEPT);
    volatile double zero = 0;
    printf("%g\n", 1 / zero);
}

// With an argument no address is used that arm64 could not tell from another one: it ignores an address's highest byte.
int main(int argc, char **argv) {
    (void)argv, canonical = argc > 1;
    setvbuf(stdout, NULL, _IONBF, 0);
    char *pages = mmap((void *)0x10000000, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    page = pages + 4096;
    for (int n = 0; n < 5; n++) printf("sum %lx\n", sum((long *)pages, 1000));
    page[4096] = 1, mprotect(page, 4096, PROT_NONE), mprotect(page + 4096, 4096, PROT_READ);
    states(), retried(), steps(), changed(), exceptions();
    pthread_attr_t small;
    pthread_attr_init(&small), pthread_attr_setstacksize(&small, 1 << 17);
    pthread_t thread;
    pthread_create(&thread, &small, overflow, NULL), pthread_join(thread, NULL);
    signal(SIGSEGV, SIG_DFL), signal(SIGBUS, SIG_DFL);
    mprotect(page, 4096, PROT_READ);
    for (int n = 0; n < 5; n++) printf("sum %lx\n", sum((long *)pages, 1000));
    return 0;
}
