// Locks in shared memory that a child has: whoever waits gets them when it dies.
#include "round.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct {
    pthread_mutex_t plain, inheriting;
    volatile int has_them;
} *shared;
static pid_t owner;

static void make(pthread_mutex_t *mutex, int protocol) {
    pthread_mutexattr_t attributes;
    CHECK(pthread_mutexattr_init(&attributes) == 0);
    CHECK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
    CHECK(pthread_mutexattr_setprotocol(&attributes, protocol) == 0);
    CHECK(pthread_mutex_init(mutex, &attributes) == 0);
}

static void give_away(void) {
    shared->has_them = 0;
    if ((owner = fork()) == 0) {
        CHECK(pthread_mutex_lock(&shared->plain) == 0 && pthread_mutex_lock(&shared->inheriting) == 0);
        for (shared->has_them = 1;;)
            pause();
    }
    while (!shared->has_them)
        usleep(500);
}

static void prepare(void) {
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    make(&shared->plain, PTHREAD_PRIO_NONE);
    make(&shared->inheriting, PTHREAD_PRIO_INHERIT);
    give_away();
}

static void take(pthread_mutex_t *mutex) {
    CHECK(pthread_mutex_lock(mutex) == EOWNERDEAD && pthread_mutex_consistent(mutex) == 0);
    CHECK(pthread_mutex_unlock(mutex) == 0);
}

static void check(long step) {
    // CRIU fails to let go of a process that dies while it lets the others go.
    if (is_fresh && step > 0)
        return;
    struct timespec soon;
    CHECK(pthread_mutex_trylock(&shared->plain) == EBUSY);
    CHECK(clock_gettime(CLOCK_REALTIME, &soon) == 0);
    CHECK(pthread_mutex_timedlock(&shared->inheriting, &soon) == ETIMEDOUT);
    CHECK(kill(owner, SIGKILL) == 0);
    take(&shared->plain);
    take(&shared->inheriting);
    CHECK(waitpid(owner, 0, 0) == owner);
    give_away();
}
