// Seccomp filters of the program's own: it puts itself under one more after each start and restore, and one of its threads
// and a child under another that the rest does not have. All that there are hold, wherever they were made, and the newest of them first.
#include "round.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// What is refused after so many starts and restores, with an error of its own.
static const int calls[] = {SYS_getuid, SYS_getgid, SYS_geteuid, SYS_getegid, SYS_getpgrp};
#define COUNT (sizeof calls / sizeof *calls)
enum { FIRST_ERROR = 200, OTHERS_ERROR = 300 };

static size_t made;
// A thread and a child that are told to look at their filters.
enum { THREAD, CHILD, OTHERS };
static volatile struct {
    long asked, answered, wrong;
} *others;

// Refuses getsid, too, of which the newest one's error is seen.
static void refuse(int number, int error) {
    struct sock_filter insns[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsid, 1, 0),
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

// The others have only what was there when they began, and their own.
static void *other(void *which) {
    long n = (long)which;
    refuse(SYS_getppid, OTHERS_ERROR + n);
    for (;; usleep(100)) {
        if (others[n].asked == others[n].answered)
            continue;
        others[n].wrong += !is_refused(SYS_getppid, OTHERS_ERROR + n) + !is_refused(calls[0], FIRST_ERROR);
        others[n].wrong += !is_refused(SYS_getsid, OTHERS_ERROR + n);
        others[n].wrong += syscall(calls[1]) == -1;
        others[n].answered++;
    }
    return which;
}

static void begin_others(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, 0, other, (void *)THREAD) == 0);
    pid_t child = fork();
    CHECK(child != -1);
    if (child == 0)
        other((void *)CHILD);
}

static void prepare(void) {
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    others = mmap(0, OTHERS * sizeof *others, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(others != MAP_FAILED);
}

static void check(long step) {
    if (is_fresh && made < COUNT) {
        refuse(calls[made], FIRST_ERROR + made);
        made++;
        if (step == 0)
            begin_others();
    }
    for (size_t n = 0; n < COUNT; n++)
        CHECK(n < made ? is_refused(calls[n], FIRST_ERROR + n) : syscall(calls[n]) != -1);
    CHECK(is_refused(SYS_getsid, FIRST_ERROR + made - 1));
    CHECK(syscall(SYS_getppid) != -1);
    for (size_t n = 0; n < OTHERS; n++) {
        others[n].asked++;
        while (others[n].answered != others[n].asked)
            usleep(100);
        CHECK(others[n].wrong == 0);
    }
    CHECK(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER);
}
