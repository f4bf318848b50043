// Signals that wait, with what came along; handlers with their masks, and their stack; a child that waits for one.
#include "round.h"
#include <signal.h>
#include <sys/wait.h>

static sigset_t blocked;
static char stack[1 << 16];
static volatile int handled, on_stack;
static pid_t child;

static void handle(int signal, siginfo_t *info, void *context) {
    char here;
    sigset_t now;
    CHECK(sigprocmask(SIG_BLOCK, 0, &now) == 0 && sigismember(&now, SIGUSR2) && sigismember(&now, signal));
    on_stack = &here >= stack && &here < stack + sizeof stack;
    handled += info->si_value.sival_int;
}

static void send(int number) {
    CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){number}) == 0);
}

static void prepare(void) {
    stack_t alternative = {stack, 0, sizeof stack};
    CHECK(sigaltstack(&alternative, 0) == 0);
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaddset(&action.sa_mask, SIGUSR2);
    CHECK(sigaction(SIGUSR1, &action, 0) == 0 && signal(SIGHUP, SIG_IGN) != SIG_ERR);
    sigaddset(&blocked, SIGRTMIN);
    sigaddset(&blocked, SIGTERM);
    CHECK(sigprocmask(SIG_BLOCK, &blocked, 0) == 0);
    for (int number = 0; number < 3; number++)
        send(number);
    CHECK(kill(getpid(), SIGTERM) == 0);
    if ((child = fork()) == 0)
        for (int number;;) {
            CHECK(sigwait(&blocked, &number) == 0 && number == SIGTERM);
            CHECK(sigqueue(1, SIGUSR1, (union sigval){1}) == 0);
        }
}

static void check(long step) {
    siginfo_t info;
    CHECK(sigwaitinfo(&(sigset_t){{1ul << (SIGRTMIN - 1)}}, &info) == SIGRTMIN);
    CHECK(info.si_value.sival_int == step % 3 && info.si_code == SI_QUEUE && info.si_pid == getpid());
    send(step % 3);
    sigset_t pending, now;
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) && sigismember(&pending, SIGRTMIN));
    CHECK(sigprocmask(SIG_BLOCK, 0, &now) == 0 && memcmp(&now, &blocked, 8) == 0);
    CHECK(kill(child, SIGTERM) == 0);
    while (handled == step)
        usleep(500);
    CHECK(handled == step + 1 && on_stack);
    stack_t alternative;
    CHECK(sigaltstack(0, &alternative) == 0 && alternative.ss_sp == stack && alternative.ss_flags == 0);
    struct sigaction action;
    CHECK(sigaction(SIGUSR1, 0, &action) == 0 && action.sa_sigaction == handle);
    int flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    CHECK((action.sa_flags & flags) == flags && sigismember(&action.sa_mask, SIGUSR2));
    CHECK(sigaction(SIGHUP, 0, &action) == 0 && action.sa_handler == SIG_IGN);
}
