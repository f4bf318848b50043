// Seccomp filters of the program's own: it puts itself under one more after each start and restore, and one of its threads
// under another that the rest does not have. All that there are hold, wherever they were made.
#include "round.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// What is refused after so many starts and restores, with an error of its own.
static const int calls[] = {SYS_getuid, SYS_getgid, SYS_geteuid, SYS_getegid, SYS_getpgrp};
#define COUNT (sizeof calls / sizeof *calls)
enum { FIRST_ERROR = 200, OTHERS_ERROR = 300 };

static size_t made;
static volatile long asked, answered, wrong;

static void refuse(int number, int error) {
    struct sock_filter insns[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof insns / sizeof *insns, insns};
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

static int is_refused(int number, int error) {
    return syscall(number) == -1 && errno == error;
}

// The other thread has only what was there when it began, and its own.
static void *other(void *nothing) {
    refuse(SYS_getppid, OTHERS_ERROR);
    for (;; usleep(100)) {
        if (asked == answered)
            continue;
        wrong += !is_refused(SYS_getppid, OTHERS_ERROR) + !is_refused(calls[0], FIRST_ERROR);
        wrong += syscall(calls[1]) == -1;
        answered++;
    }
    return nothing;
}

static void prepare(void) {
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

static void check(long step) {
    if (is_fresh && made < COUNT) {
        refuse(calls[made], FIRST_ERROR + made);
        made++;
        pthread_t thread;
        if (step == 0)
            CHECK(pthread_create(&thread, 0, other, 0) == 0);
    }
    for (size_t n = 0; n < COUNT; n++)
        CHECK(n < made ? is_refused(calls[n], FIRST_ERROR + n) : syscall(calls[n]) != -1);
    CHECK(syscall(SYS_getppid) != -1);
    asked++;
    while (answered != asked)
        usleep(100);
    CHECK(wrong == 0);
    CHECK(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER);
}
