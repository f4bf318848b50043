// Signals in every way that a program can meet them. Prints the same natively and translated.
#define _GNU_SOURCE
#include <errno.h>
#include <immintrin.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int depth, deepest, count;
static sigjmp_buf back;

static void set(int signal, void (*handler)(int, siginfo_t *, void *), int flags, int also_blocked) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    if (also_blocked) sigaddset(&action.sa_mask, also_blocked);
    if (sigaction(signal, &action, NULL)) perror("sigaction");
}

static void nest(int signal, siginfo_t *info, void *context) {
    (void)info, (void)context;
    count++;
    if (++depth > deepest) deepest = depth;
    if (count < 4) raise(signal == SIGUSR1 ? SIGUSR2 : SIGUSR1);
    depth--;
}

static void nested(void) {
    set(SIGUSR1, nest, 0, 0), set(SIGUSR2, nest, 0, 0);
    count = deepest = 0, raise(SIGUSR1);
    printf("nested: %d calls, %d deep\n", count, deepest);
    set(SIGUSR1, nest, SA_NODEFER, 0), set(SIGUSR2, nest, SA_NODEFER, 0);
    count = deepest = 0, raise(SIGUSR1);
    printf("nodefer: %d calls, %d deep\n", count, deepest);
    set(SIGUSR1, nest, 0, SIGUSR2), set(SIGUSR2, nest, 0, SIGUSR1);
    count = deepest = 0, raise(SIGUSR1);
    printf("masked: %d calls, %d deep\n", count, deepest);
}

static void note(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    count++;
    if (info->si_code == SI_QUEUE) printf("queued value %d\n", info->si_value.sival_int);
}

static void reset_hand(void) {
    set(SIGUSR1, note, SA_RESETHAND, 0);
    count = 0, raise(SIGUSR1);
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    printf("resethand: %d, default again: %d\n", count, now.sa_handler == SIG_DFL);
}

// Again and again, so that one comes while the program waits, however slow that is.
static void set_timer(long microseconds) {
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static int pipe_fds[2];
static void write_pipe(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    if (++count == 3 && write(pipe_fds[1], "x", 1) != 1) perror("write");
}

static void restart(void) {
    char byte = 0;
    if (pipe(pipe_fds)) perror("pipe");
    set(SIGALRM, write_pipe, SA_RESTART, 0);
    count = 0, set_timer(20000);
    ssize_t got = read(pipe_fds[0], &byte, 1);
    set_timer(0);
    printf("restart: read %zd %c, handled %d\n", got, byte, count >= 3);
    set(SIGALRM, note, 0, 0);
    count = 0, set_timer(20000);
    got = read(pipe_fds[0], &byte, 1);
    int error = errno;
    set_timer(0);
    printf("no restart: read %zd %s, handled %d\n", got, strerror(error), count > 0);
    set(SIGALRM, note, SA_RESTART, 0);
    count = 0, set_timer(20000);
    struct timespec left, request = {50, 0};
    int slept = nanosleep(&request, &left);
    error = errno, set_timer(0);
    printf("nanosleep: %d %s, %ld s left\n", slept, strerror(error), (long)left.tv_sec);
}

static void jump(int signal, siginfo_t *info, void *context) {
    (void)context;
    siglongjmp(back, signal * 1000 + info->si_code);
}

static void jump_at(int signal, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    printf("signal %d code %d at address %#lx trap %lld error %lld cr2 %#llx\n", signal, info->si_code,
           (unsigned long)info->si_addr, uc->uc_mcontext.gregs[REG_TRAPNO], uc->uc_mcontext.gregs[REG_ERR],
           uc->uc_mcontext.gregs[REG_CR2]);
    siglongjmp(back, 1);
}

static void synchronous(void) {
    volatile int zero = 0;
    char *page = mmap((void *)0x10000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    set(SIGSEGV, jump_at, 0, 0);
    if (!sigsetjmp(back, 1)) *(volatile int *)0x1234 = 1;
    if (!sigsetjmp(back, 1)) count = *(volatile int *)0x5678;
    if (!sigsetjmp(back, 1)) *(volatile char *)(page + 5) = 1;
    if (!sigsetjmp(back, 1)) ((void (*)(void))0x9000)();
    if (!sigsetjmp(back, 1)) ((void (*)(void))page)();
    set(SIGFPE, jump, 0, 0), set(SIGILL, jump, 0, 0), set(SIGTRAP, jump, 0, 0), set(SIGBUS, jump, 0, 0);
    int got = sigsetjmp(back, 1);
    if (!got) zero = 1 / zero;
    printf("divide %d\n", got);
    if (!(got = sigsetjmp(back, 1))) __asm__ volatile("ud2");
    printf("undefined %d\n", got);
    if (!(got = sigsetjmp(back, 1))) __asm__ volatile("int3");
    printf("breakpoint %d\n", got);
    if (!(got = sigsetjmp(back, 1))) __asm__ volatile("hlt");
    printf("halt %d\n", got);
}

// Makes the faulting load succeed by giving its base register another value.
static int answer = 42;
static void repair(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RBX] = (long long)&answer;
}

static void change_context(void) {
    set(SIGSEGV, repair, 0, 0);
    int value;
    __asm__ volatile("mov $8, %%ebx\n mov (%%rbx), %0" : "=r"(value) : : "rbx");
    printf("repaired: %d\n", value);
}

static char other_stack[1 << 16];
static void on_stack(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    char here;
    stack_t now;
    sigaltstack(NULL, &now);
    ucontext_t *uc = context;
    printf("alternate: %d, flags %d, saved flags %d\n",
           &here > other_stack && &here < other_stack + sizeof other_stack, now.ss_flags, uc->uc_stack.ss_flags);
}

static void alternate(void) {
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&stack, NULL);
    set(SIGUSR1, on_stack, SA_ONSTACK, 0), raise(SIGUSR1);
    set(SIGUSR1, on_stack, 0, 0), raise(SIGUSR1);
    stack.ss_flags = SS_DISABLE, sigaltstack(&stack, NULL);
}

static void clobber(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    __asm__ volatile("pcmpeqd %%xmm7, %%xmm7\n fninit\n fldpi\n std\n cld" ::: "xmm7");
}

static void floating_point(void) {
    double kept = 1.25, x87;
    set(SIGUSR1, clobber, 0, 0);
    long pid = getpid(), number = 62, signal = SIGUSR1;
    __asm__ volatile("movsd %2, %%xmm7\n fldl %2\n stc\n syscall\n fstpl %1\n movsd %%xmm7, %0"
                     : "=m"(kept), "=m"(x87) : "m"(kept), "a"(number), "D"(pid), "S"(signal) : "xmm7", "rcx", "r11", "memory");
    printf("floating point: %g %g\n", kept, x87);
}

static void waiting(void) {
    sigset_t set_of, old;
    siginfo_t info;
    sigemptyset(&set_of), sigaddset(&set_of, SIGUSR2);
    set(SIGUSR2, note, 0, 0);
    sigprocmask(SIG_BLOCK, &set_of, &old);
    count = 0, sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 7});
    sigset_t pending;
    sigpending(&pending);
    printf("blocked: %d handled, pending %d\n", count, sigismember(&pending, SIGUSR2));
    int got = sigtimedwait(&set_of, &info, &(struct timespec){1, 0});
    printf("sigtimedwait: %d value %d from me %d\n", got, info.si_value.sival_int, info.si_pid == getpid());
    kill(getpid(), SIGUSR2);
    got = sigsuspend(&old);
    printf("sigsuspend: %d %s, %d handled\n", got, strerror(errno), count);
    sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 9});
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("unblocked: %d handled\n", count);
}

static void statuses(void) {
    int signals[] = {SIGTERM, SIGSEGV, SIGABRT, SIGKILL, SIGFPE, SIGRTMIN + 3};
    for (size_t n = 0; n < sizeof signals / sizeof *signals; n++) {
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            signal(signals[n], SIG_DFL);
            if (signals[n] == SIGSEGV) *(volatile int *)8 = 1;
            raise(signals[n]), _exit(1);
        }
        int status;
        waitpid(child, &status, 0);
        printf("child: signal %d\n", WTERMSIG(status));
    }
    pid_t child = fork();
    if (!child) raise(SIGSTOP), _exit(7);
    int status;
    waitpid(child, &status, WUNTRACED);
    printf("stopped %d by %d\n", WIFSTOPPED(status), WSTOPSIG(status));
    kill(child, SIGCONT), waitpid(child, &status, 0);
    printf("exit %d\n", WEXITSTATUS(status));
}

static void storm(void) {
    set(SIGALRM, note, SA_RESTART, 0);
    count = 0, set_timer(500);
    uint64_t sum = 0;
    for (uint64_t n = 0; count < 50; n++) sum += n * n % 7 >= 7;
    set_timer(0);
    printf("storm: %d\n", (int)sum);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    nested(), reset_hand(), restart(), synchronous(), change_context(), alternate(), floating_point(), waiting();
    statuses(), storm();
    struct sigaction action = {.sa_handler = SIG_IGN};
    printf("signal 63: %d, SIGKILL: %d\n", sigaction(63, &action, NULL), sigaction(SIGKILL, &action, NULL));
    return 0;
}
