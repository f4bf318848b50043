// A parent, a child in a session of its own and a grandchild in its parent's group, which answer through shared memory,
// and a child that has ended and that nobody has asked for. (CRIU waits for ever for a stopped one in a frozen cgroup.)
#include "round.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static volatile struct {
    pid_t child, grandchild;
    long asked, answers[2];
} *shared;

static void serve(int place) {
    for (;;) {
        if (shared->answers[place] != shared->asked)
            shared->answers[place] = shared->asked;
        usleep(1000);
    }
}

static pid_t ended;

// A child that has ended with `status`, and is left so.
static pid_t left(int status) {
    pid_t child = fork();
    siginfo_t info;
    if (child == 0)
        _exit(status);
    CHECK(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0 && info.si_status == status);
    return child;
}

static void prepare(void) {
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        CHECK(setsid() == getpid());
        shared->child = getpid();
        if (fork() == 0) {
            shared->grandchild = getpid();
            serve(1);
        }
        serve(0);
    }
    while (!shared->child || !shared->grandchild)
        usleep(1000);
    CHECK(child == shared->child);
    ended = left(0);
}

static void check(long step) {
    shared->asked = step;
    while (shared->answers[0] != step || shared->answers[1] != step)
        usleep(1000);
    CHECK(getsid(shared->child) == shared->child);
    CHECK(getsid(shared->grandchild) == shared->child);
    CHECK(getpgid(shared->grandchild) == shared->child);
    CHECK(getsid(0) != shared->child);
    CHECK(waitpid(shared->child, 0, WNOHANG) == 0);
    int status;
    CHECK(waitpid(ended, &status, 0) == ended && WIFEXITED(status) && WEXITSTATUS(status) == step % 100);
    ended = left((step + 1) % 100);
}
