// Processes made in all the ways that C libraries have, and what they share with their maker. With an argument: only
// what emulators of a user's side of Linux can do, for which vfork is fork.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile int shared;
static volatile int caught;

static void on_signal(int signal) { caught += signal; }

static int finish(pid_t pid)
{
    int status = -1;
    pid_t got = waitpid(pid, &status, __WALL);
    return got == pid ? (WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status)) : -errno;
}

static void spawned(void)
{
    pid_t pid;
    char *echo[] = {"/bin/busybox", "echo", "spawned", NULL};
    int made = posix_spawn(&pid, "/bin/busybox", NULL, NULL, echo, environ);
    int ended = finish(pid);
    printf("spawn %d %d\n", made, ended);
    char *none[] = {"none", NULL};
    printf("missing: %s\n", strerror(posix_spawn(&pid, "/nonexistent", NULL, NULL, none, environ)));
    printf("no program: %s\n", strerror(posix_spawn(&pid, "/etc/passwd", NULL, NULL, none, environ)));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/nonexistent/file", O_RDONLY, 0);
    printf("bad action: %s\n", strerror(posix_spawn(&pid, "/bin/busybox", &actions, NULL, echo, environ)));

    posix_spawnattr_t attributes;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &set);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    signal(SIGTERM, SIG_IGN);
    char *die[] = {"/bin/busybox", "sh", "-c", "kill -TERM $$; echo alive", NULL};
    posix_spawn(&pid, "/bin/busybox", NULL, &attributes, die, environ);
    printf("default again: %d\n", finish(pid));
    posix_spawn(&pid, "/bin/busybox", NULL, NULL, die, environ);
    printf("ignored: %d\n", finish(pid));
    signal(SIGTERM, SIG_DFL);
    printf("system %d\n", system("exit 7"));
    FILE *pipe = popen("echo piped", "r");
    char line[20] = "";
    printf("%s", fgets(line, sizeof line, pipe));
    printf("pclose %d\n", pclose(pipe));
}

// The parent's handlers stay as they are, its memory does not.
static void vforked(void)
{
    signal(SIGUSR1, on_signal);
    pid_t pid = vfork();
    if (pid == 0) {
        shared = 42;
        signal(SIGUSR1, SIG_IGN);
        raise(SIGUSR1);
        _exit(3);
    }
    printf("vfork %d, shared %d\n", finish(pid), shared);
    raise(SIGUSR1);
    printf("caught %d\n", caught);
    for (volatile int n = 0; n < 600; n++) {
        pid = vfork();
        if (pid == 0) {
            shared += 1;
            _exit(n & 7);
        }
        if (finish(pid) != (n & 7))
            printf("round %d failed\n", n);
    }
    printf("shared %d\n", shared);
    pid = vfork();
    if (pid == 0) {
        if (fork() == 0) {
            shared = 1;
            _exit(0);
        }
        int status;
        wait(&status);
        execl("/nonexistent", "none", NULL);
        shared = errno;
        kill(getpid(), SIGKILL);
        _exit(1);
    }
    printf("fork in vfork: %d, errno %d\n", finish(pid), shared);
}

static int child(void *argument)
{
    shared = (int)(intptr_t)argument;
    if (shared == 9)
        signal(SIGUSR1, SIG_DFL);
    if (shared == 10)
        raise(SIGUSR1);
    if (shared == 11)
        return chdir("/usr") || close(100);
    return 5;
}

static char stack[1 << 16] __attribute__((aligned(16)));

static void cloned(const char *what, int flags, int argument)
{
    shared = caught = 0;
    int parent_tid = 0, child_tid = 0;
    int pid = clone(child, stack + sizeof stack, flags, (void *)(intptr_t)argument, &parent_tid, NULL, &child_tid);
    if (pid < 0) {
        printf("%s: %s\n", what, strerror(errno));
        return;
    }
    int result = finish(pid);
    printf("%s: %d, shared %d, tids %d %d\n", what, result, shared, parent_tid == pid, child_tid == pid);
    raise(SIGUSR1);
    printf("  caught %d\n", caught);
}

// The child uses no stack, which may be its parent's.
static int clone3(struct clone_args *args)
{
    long result = SYS_clone3;
    __asm__ volatile("syscall; test %%rax, %%rax; jnz 1f; mov $6, %%edi; mov %3, %%eax; syscall; 1:"
                     : "+a"(result), "+D"(args)
                     : "S"(sizeof *args), "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    errno = result < 0 ? -result : 0;
    return result < 0 ? -1 : result;
}

static void cloned3(const char *what, struct clone_args args)
{
    int pidfd = -1, parent_tid = 0;
    args.pidfd = (uintptr_t)&pidfd;
    args.parent_tid = (uintptr_t)&parent_tid;
    int pid = clone3(&args);
    if (pid < 0) {
        printf("clone3 %s: %s\n", what, strerror(errno));
        return;
    }
    siginfo_t info = {0};
    int by_fd = pidfd >= 0 ? waitid(P_PIDFD, pidfd, &info, WEXITED | __WALL) : finish(pid);
    printf("clone3 %s: %d %d, status %d, tid %d\n", what, by_fd, pidfd >= 0, info.si_status, parent_tid == pid);
}

// Programs found through descriptors that are closed when they are executed.
static void executed(const char *what, int directory, const char *path, int flags)
{
    char *arguments[] = {"sh", "-c", "echo /proc/self/fd/*; exit 6", NULL};
    pid_t pid = fork();
    if (pid == 0) {
        syscall(SYS_execveat, directory, path, arguments, environ, flags);
        _exit(100 + errno);
    }
    printf("%s: %d\n", what, finish(pid));
}

int main(int argc, char **argv)
{
    (void)argv;
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGUSR1, on_signal);
    cloned("fork", SIGCHLD, 7);
    cloned("sighand alone", CLONE_SIGHAND | SIGCHLD, 7);
    cloned("thread alone", CLONE_THREAD | SIGCHLD, 7);
    if (argc > 1)
        return 0;
    cloned("tids", CLONE_PARENT_SETTID | SIGCHLD, 7);
    spawned();
    vforked();
    cloned("memory", CLONE_VM | SIGCHLD, 8);
    cloned("handlers", CLONE_VM | SIGCHLD, 9);
    cloned("handler", CLONE_VM | SIGCHLD, 10);
    cloned("one handler", CLONE_VM | CLONE_SIGHAND | SIGCHLD, 10);
    cloned("vfork", CLONE_VM | CLONE_VFORK | SIGCHLD, 9);
    cloned("no signal", CLONE_VM | CLONE_VFORK, 7);
    dup2(1, 100);
    cloned("files", CLONE_FILES | CLONE_FS | SIGCHLD, 11);
    char directory[100];
    printf("%s %d\n", getcwd(directory, sizeof directory), fcntl(100, F_GETFD));
    cloned("clear tid", CLONE_VM | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD, 7);
    cloned3("plain", (struct clone_args){.exit_signal = SIGCHLD});
    cloned3("pidfd", (struct clone_args){.flags = CLONE_PIDFD | CLONE_PARENT_SETTID, .exit_signal = SIGCHLD});
    cloned3("vfork", (struct clone_args){.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD, .exit_signal = SIGCHLD});
    cloned3("vfork pidfd", (struct clone_args){.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_PARENT_SETTID | CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD});
    cloned3("clear", (struct clone_args){.flags = CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD});
    cloned3("clear and share", (struct clone_args){.flags = CLONE_CLEAR_SIGHAND | CLONE_VM | CLONE_SIGHAND});
    cloned3("signal after the last", (struct clone_args){.exit_signal = 65});
    cloned3("bad signal", (struct clone_args){.exit_signal = 999});
    cloned3("bad flags", (struct clone_args){.flags = 1ull << 50});
    cloned3("low flags", (struct clone_args){.flags = 17});
    cloned3("half a stack", (struct clone_args){.stack = 4096, .exit_signal = SIGCHLD});
    int bin = open("/bin", O_PATH | O_DIRECTORY | O_CLOEXEC), sh = open("/bin/sh", O_RDONLY | O_CLOEXEC);
    executed("in a directory", bin, "sh", 0);
    executed("a file", sh, "", AT_EMPTY_PATH);
    executed("below a file", sh, "sh", 0);
    executed("no descriptor", 77, "sh", 0);
    int wanted = 4000000;
    cloned3("bad tid", (struct clone_args){.set_tid = (uintptr_t)&wanted, .set_tid_size = 1, .exit_signal = SIGCHLD});
    cloned3("vfork bad tid", (struct clone_args){.flags = CLONE_VM | CLONE_VFORK, .set_tid = (uintptr_t)&wanted, .set_tid_size = 1, .exit_signal = SIGCHLD});
    cloned3("bad cgroup", (struct clone_args){.flags = CLONE_INTO_CGROUP, .cgroup = 1, .exit_signal = SIGCHLD});
    errno = 0;
    printf("short %ld", syscall(SYS_clone3, stack, 63));
    printf(" %d", errno);
    printf(" long %ld", syscall(SYS_clone3, stack, 5000));
    printf(" %d\n", errno);
    return 0;
}
