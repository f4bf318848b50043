// A descriptor for a child: it can be sent a signal through it, and be waited for.
#include "round.h"
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

static int alive;
static pid_t child;
static volatile int *count;

static void handle(int signal) {
    ++*count;
}

static void prepare(void) {
    count = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(count != MAP_FAILED && signal(SIGUSR1, handle) != SIG_ERR);
    if ((child = fork()) == 0)
        for (;;)
            pause();
    CHECK((alive = pidfd_open(child, 0)) >= 0);
}

static void check(long step) {
    struct pollfd end = {alive, POLLIN, 0};
    CHECK(poll(&end, 1, 0) == 0);
    CHECK(*count == step && pidfd_send_signal(alive, SIGUSR1, 0, 0) == 0);
    while (*count == step)
        usleep(500);
    siginfo_t info = {};
    CHECK(waitid(P_PIDFD, alive, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0);
}
