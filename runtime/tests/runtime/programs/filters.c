// seccomp(2): what filters do to a program's own calls, in every way that a filter may end. Prints the same natively
// and translated.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define AT(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define END(value) BPF_STMT(BPF_RET | BPF_K, value)
#define ALLOW END(SECCOMP_RET_ALLOW)

static long filter_with(unsigned flags, struct sock_filter *program, unsigned short length) {
    struct sock_fprog fprog = {length, program};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &fprog);
}

// Calls with this number end so.
static long on_call(unsigned flags, int number, unsigned action) {
    struct sock_filter program[] = {AT(arch), IS(AUDIT_ARCH_X86_64, 0, 3), AT(nr), IS(number, 0, 1), END(action), ALLOW};
    return filter_with(flags, program, 6);
}

static void report(const char *what, pid_t pid) {
    int status;
    waitpid(pid, &status, 0);
    printf("%s: %s %d\n", what, WIFEXITED(status) ? "exit" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

// Each in a process of its own, for filters stay.
#define IN_CHILD(what, ...) \
    do { \
        fflush(stdout); \
        pid_t pid = fork(); \
        if (pid == 0) { prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); __VA_ARGS__; exit(0); } \
        report(what, pid); \
    } while (0)

static void on_trap(int signal, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    greg_t *registers = c->uc_mcontext.gregs;
    printf("signal %d code %d errno %d call %d arch %x", signal, info->si_code, info->si_errno, info->si_syscall, info->si_arch);
    printf(" at %d rax %lld rdi %lld rcx %d\n", info->si_call_addr == (void *)registers[REG_RIP], registers[REG_RAX], registers[REG_RDI], registers[REG_RCX] == registers[REG_RIP]);
    // As a broker does it: the call's result is made up.
    registers[REG_RAX] = 4242;
}

static void trap(void) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    printf("set %ld\n", on_call(0, SYS_getpgid, SECCOMP_RET_TRAP | 77));
    printf("got %ld\n", syscall(SYS_getpgid, 55));
}

static void arguments(void) {
    struct sock_filter program[] = {
        AT(nr), IS(SYS_getpriority, 0, 8),
        AT(args[0]), BPF_STMT(BPF_ST, 3), AT(args[1]), BPF_STMT(BPF_LDX | BPF_MEM, 3),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
        BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO), BPF_STMT(BPF_RET | BPF_A, 0),
        ALLOW,
    };
    printf("set %ld", filter_with(0, program, 11));
    for (int n = 0; n < 4; n++) {
        long got = syscall(SYS_getpriority, n * 5, n + 1);
        printf(" %ld/%d", got, errno);
    }
    struct sock_filter high[] = {AT(nr), IS(SYS_lseek, 0, 3), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]) + 4), IS(7, 0, 1), END(SECCOMP_RET_ERRNO | 99), ALLOW};
    printf(" %ld", filter_with(0, high, 6));
    long got = syscall(SYS_lseek, -1, 7ull << 32, 0);
    printf(" %ld/%d", got, errno);
    got = syscall(SYS_lseek, -1, 8ull << 32, 0);
    printf(" %ld/%d\n", got, errno);
}

static void precedence(void) {
    on_call(0, SYS_getpgid, SECCOMP_RET_ERRNO | 11);
    on_call(0, SYS_getpgid, SECCOMP_RET_LOG);
    on_call(0, SYS_getsid, SECCOMP_RET_ERRNO | 12);
    on_call(0, SYS_getsid, SECCOMP_RET_ERRNO | 13);
    on_call(0, SYS_getuid, SECCOMP_RET_ERRNO | 0);
    on_call(0, SYS_geteuid, SECCOMP_RET_ERRNO | 60000);
    on_call(0, SYS_getgid, SECCOMP_RET_TRACE | 5);
    long a = syscall(SYS_getpgid, 0);
    printf("%ld %d", a, errno);
    a = syscall(SYS_getsid, 0);
    printf(" %ld %d", a, errno);
    errno = 0;
    a = syscall(SYS_getuid);
    printf(" %ld %d", a, errno);
    a = syscall(SYS_geteuid);
    printf(" %ld %d", a, errno);
    a = syscall(SYS_getgid);
    printf(" %ld %d, mode %d\n", a, errno, prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
}

static void *in_thread(void *unused) {
    errno = 0;
    long got = syscall(SYS_getpgid, 0);
    printf("thread %d %d\n", got == getpgrp(), errno);
    return unused;
}

static pthread_barrier_t barrier;
static void *waiting(void *unused) {
    pthread_barrier_wait(&barrier), pthread_barrier_wait(&barrier);
    return in_thread(unused);
}

static void *killed(void *unused) {
    on_call(0, SYS_getpgid, SECCOMP_RET_KILL_THREAD);
    syscall(SYS_getpgid, 0);
    return unused;
}

static void *diverged(void *tid) {
    *(int *)tid = syscall(SYS_gettid);
    on_call(0, SYS_getsid, SECCOMP_RET_ALLOW);
    pthread_barrier_wait(&barrier), pthread_barrier_wait(&barrier);
    return NULL;
}

static void threads(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, waiting, NULL);
    pthread_barrier_wait(&barrier);
    printf("own only %ld\n", on_call(0, SYS_getpgid, SECCOMP_RET_ERRNO | 21));
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, waiting, NULL);
    pthread_barrier_wait(&barrier);
    printf("all %ld\n", on_call(SECCOMP_FILTER_FLAG_TSYNC, SYS_getpgid, SECCOMP_RET_ERRNO | 20));
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    static int tid;
    pthread_create(&thread, NULL, diverged, &tid);
    pthread_barrier_wait(&barrier);
    printf("diverged %d", on_call(SECCOMP_FILTER_FLAG_TSYNC, SYS_getpgid, SECCOMP_RET_ERRNO | 20) == tid);
    printf(" %ld %d\n", on_call(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, SYS_getpgid, SECCOMP_RET_ALLOW), errno);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, killed, NULL);
    pthread_join(thread, NULL);
    printf("alive after a thread's death\n");
}

static void refused(void) {
    struct sock_filter none[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), ALLOW}, half[] = {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), ALLOW};
    struct sock_filter open_end[] = {AT(nr)}, jump[] = {IS(1, 1, 0), ALLOW}, divide[] = {BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), ALLOW};
    struct sock_filter unwritten[] = {BPF_STMT(BPF_LD | BPF_MEM, 2), ALLOW}, modulo[] = {BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 3), ALLOW};
    struct { struct sock_filter *program; int length; } bad[] = {{none, 2}, {half, 2}, {open_end, 1}, {jump, 2}, {divide, 2}, {unwritten, 2}, {modulo, 2}, {none, 0}, {none, 5000}};
    for (int n = 0; n < 9; n++) {
        long got = filter_with(0, bad[n].program, bad[n].length);
        printf("%ld/%d ", got, errno);
    }
    struct sock_filter fine[] = {ALLOW};
    printf("%ld/%d ", filter_with(1 << 20, fine, 1), errno);
    printf("%ld/%d\n", filter_with(0, (void *)8, 1), errno);
    unsigned actions[] = {SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, 0x12340000};
    for (int n = 0; n < 4; n++) printf("%ld ", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[n]));
    printf("%d\n", errno);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 2) {
        long got = syscall(SYS_getpgid, 0);
        printf("after exec %ld %d mode %d nnp %d\n", got, errno, prctl(PR_GET_SECCOMP, 0, 0, 0, 0), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
        printf("fd %d\n", dup(1));
        return 0;
    }
    printf("mode %d\n", prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
    IN_CHILD("trap", trap());
    IN_CHILD("trap default", on_call(0, SYS_getpgid, SECCOMP_RET_TRAP); syscall(SYS_getpgid, 0));
    IN_CHILD("trap blocked", sigset_t s; sigfillset(&s); sigprocmask(SIG_BLOCK, &s, NULL); on_call(0, SYS_getpgid, SECCOMP_RET_TRAP); syscall(SYS_getpgid, 0));
    IN_CHILD("kill", on_call(0, SYS_getpgid, SECCOMP_RET_KILL_PROCESS); syscall(SYS_getpgid, 0));
    IN_CHILD("kill thread", on_call(0, SYS_getpgid, SECCOMP_RET_KILL_THREAD); syscall(SYS_getpgid, 0));
    IN_CHILD("kill by an unknown action", on_call(0, SYS_getpgid, 0x12340000); syscall(SYS_getpgid, 0));
    IN_CHILD("arguments", arguments());
    IN_CHILD("precedence", precedence());
    IN_CHILD("threads", threads());
    IN_CHILD("refused", refused());
    IN_CHILD("notify", on_call(0, SYS_getpgid, SECCOMP_RET_USER_NOTIF); long r = syscall(SYS_getpgid, 0); printf("%ld %d\n", r, errno));
    IN_CHILD("prctl", struct sock_filter p[] = {AT(nr), IS(SYS_getpgid, 0, 1), END(SECCOMP_RET_ERRNO | 31), ALLOW}; struct sock_fprog f = {4, p};
             printf("%d", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f)); long r = syscall(SYS_getpgid, 0); printf(" %ld %d\n", r, errno));
    IN_CHILD("strict", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); if (write(1, "strict\n", 7) != 7) syscall(SYS_exit, 3); syscall(SYS_exit, 4));
    IN_CHILD("strict killed", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); syscall(SYS_getpid));
    IN_CHILD("inherited", on_call(0, SYS_getpgid, SECCOMP_RET_ERRNO | 41); fflush(stdout);
             pid_t p = fork(); if (p == 0) in_thread(NULL), exit(6); report("grandchild", p));
    if (argc == 1) {
        IN_CHILD("exec", on_call(0, SYS_getpgid, SECCOMP_RET_ERRNO | 51); on_call(0, SYS_getpgid, SECCOMP_RET_LOG); execl(argv[0], argv[0], "again", "x", NULL));
        IN_CHILD("vfork", on_call(0, SYS_getpgid, SECCOMP_RET_ERRNO | 52); pid_t p = vfork(); if (p == 0) { execl(argv[0], argv[0], "again", "x", NULL); _exit(9); } report("child", p));
    }
    return 0;
}
