// A parent, a child in a session of its own and a grandchild in its parent's group, which answer through signals.
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
}
