// System calls whose numbers, flags or structures differ between machines. Prints the same natively and
// translated.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

// O_LARGEFILE as x86-64 kernels set it on every file; user-mode emulation loses it.
enum { KERNEL_LARGEFILE = 0100000 };

#define SHOW(call) printf("%s = %ld%s%s\n", #call, (long)(call), errno ? " " : "", errno ? strerror(errno) : ""), errno = 0

static void show_stat(const char *what, struct stat *s) {
    printf("%s: mode %o nlink %ld size %ld blksize %ld mtime %ld.%09ld\n", what, s->st_mode, (long)s->st_nlink,
           (long)s->st_size, (long)s->st_blksize, (long)s->st_mtim.tv_sec, (long)s->st_mtim.tv_nsec);
}

static void files(void) {
    struct stat s;
    int fd = syscall(SYS_creat, "file", 0640);
    SHOW(write(fd, "hello", 5));
    SHOW(fcntl(fd, F_GETFL) & ~KERNEL_LARGEFILE);
    close(fd);
    fd = open("file", O_RDWR | O_APPEND | O_NONBLOCK);
    SHOW(fcntl(fd, F_GETFL) & ~KERNEL_LARGEFILE);
    SHOW(fcntl(fd, F_SETFL, O_NONBLOCK));
    SHOW(fcntl(fd, F_GETFL) & ~KERNEL_LARGEFILE);
    SHOW(utimes("file", (struct timeval[]){{1, 2}, {3, 4}}));
    SHOW(syscall(SYS_stat, "file", &s)), show_stat("stat", &s);
    SHOW(utime("file", &(struct utimbuf){5, 6}));
    SHOW(fstat(fd, &s)), show_stat("fstat", &s);
    SHOW(syscall(SYS_futimesat, AT_FDCWD, "file", (struct timeval[]){{7, 8}, {9, 10}}));
    SHOW(fstatat(AT_FDCWD, "file", &s, 0)), show_stat("fstatat", &s);
    SHOW(utimes("file", (struct timeval[]){{1, 2000000}, {3, 4}}));
    SHOW(syscall(SYS_stat, "file", (void *)8));
    SHOW(syscall(SYS_symlink, "file", "link"));
    SHOW(syscall(SYS_lstat, "link", &s)), printf("link: %o %ld\n", s.st_mode, (long)s.st_size);
    SHOW(syscall(SYS_open, "link", O_RDONLY | O_NOFOLLOW));
    SHOW(syscall(SYS_open, "file", O_RDONLY | O_DIRECTORY));
    char text[20] = "";
    SHOW(syscall(SYS_readlink, "link", text, 20)), puts(text);
    SHOW(syscall(SYS_access, "file", R_OK)), SHOW(syscall(SYS_access, "none", R_OK));
    SHOW(syscall(SYS_mkdir, "dir", 0700)), SHOW(syscall(SYS_rename, "link", "dir/link"));
    SHOW(syscall(SYS_link, "file", "dir/hard")), SHOW(syscall(SYS_chmod, "file", 0600));
    SHOW(syscall(SYS_chown, "file", -1, -1)), SHOW(syscall(SYS_lchown, "dir/link", -1, -1));
    SHOW(syscall(SYS_mknod, "fifo", S_IFIFO | 0600, 0));
    struct { unsigned long ino, off; unsigned short len; char name[]; } *entry;
    char entries[1000];
    int dir = open("dir", O_RDONLY | O_DIRECTORY);
    long bytes = syscall(SYS_getdents, dir, entries, sizeof entries);
    int names = 0, types = 0;
    for (long at = 0; at < bytes; at += entry->len) {
        entry = (void *)(entries + at);
        names += strlen(entry->name), types += entries[at + entry->len - 1];
    }
    printf("getdents: %ld bytes, names %d, types %d\n", bytes, names, types);
    SHOW(syscall(SYS_unlink, "dir/link")), SHOW(syscall(SYS_unlink, "dir/hard")), SHOW(syscall(SYS_rmdir, "dir"));
    SHOW(open(".", O_TMPFILE | O_RDWR, 0600) >= 0);
    SHOW(syscall(SYS_dup2, fd, 50)), SHOW(syscall(SYS_dup2, 50, 50)), SHOW(syscall(SYS_dup2, 99, 99));
    SHOW(syscall(SYS_dup2, 99, 100)), SHOW(unlink("file")), SHOW(unlink("fifo"));
}

static void waiting(void) {
    int fds[2];
    SHOW(syscall(SYS_pipe, fds));
    struct pollfd poll_fd = {fds[0], POLLIN, 0};
    SHOW(syscall(SYS_poll, &poll_fd, 1, 10));
    if (write(fds[1], "x", 1) != 1) perror("write");
    SHOW(syscall(SYS_poll, &poll_fd, 1, -1)), printf("revents %d\n", poll_fd.revents);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fds[0], &set);
    struct timeval tv = {1, 500000};
    SHOW(syscall(SYS_select, fds[0] + 1, &set, NULL, NULL, &tv)), printf("left %ld\n", (long)tv.tv_sec);
    FD_ZERO(&set);
    tv = (struct timeval){0, 1000};
    SHOW(select(0, NULL, NULL, NULL, &tv)), printf("left %ld.%ld\n", (long)tv.tv_sec, (long)tv.tv_usec);
    int epoll = syscall(SYS_epoll_create, 1);
    SHOW(syscall(SYS_epoll_create, 0));
    for (int n = 0; n < 3; n++) {
        struct epoll_event event = {EPOLLOUT, {.u64 = 0x1122334455667700 + n}};
        SHOW(epoll_ctl(epoll, EPOLL_CTL_ADD, n == 0 ? fds[1] : eventfd(0, 0), &event));
    }
    struct epoll_event events[8];
    int got = syscall(SYS_epoll_wait, epoll, events, 8, 100);
    for (int n = 0; n < got; n++) printf("event %#x %#lx\n", events[n].events, (long)events[n].data.u64);
    SHOW(epoll_pwait(epoll, events, 1, 0, NULL)), SHOW(epoll_wait(epoll, events, 0, 0));
    int event = syscall(SYS_eventfd, 3);
    uint64_t value = 0;
    SHOW(read(event, &value, 8)), printf("eventfd %ld\n", (long)value);
    sigset_t signals;
    sigemptyset(&signals), sigaddset(&signals, SIGUSR1), sigprocmask(SIG_BLOCK, &signals, NULL);
    int signal_fd = signalfd(-1, &signals, 0);
    struct signalfd_siginfo info;
    raise(SIGUSR1);
    SHOW(read(signal_fd, &info, sizeof info)), printf("signalfd %d\n", info.ssi_signo);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, 1000000}}, NULL);
    SHOW(read(timer, &value, 8));
}

static void processes(void) {
    struct utsname names;
    SHOW(uname(&names)), puts(names.machine);
    SHOW(alarm(100)), SHOW(alarm(0));
    SHOW(syscall(SYS_time, NULL) - time(NULL) <= 1);
    SHOW(syscall(SYS_getpgrp) == getpgid(0));
    struct rlimit limit;
    SHOW(syscall(SYS_getrlimit, RLIMIT_STACK, &limit));
    SHOW(prctl(PR_SET_NAME, "name")), SHOW(prctl(PR_GET_SECCOMP)), SHOW(prctl(12345));
    char name[16];
    SHOW(prctl(PR_GET_NAME, name)), puts(name);
    SHOW(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &(struct timespec){0, 1000}, NULL));
    SHOW(syscall(SYS_nanosleep, &(struct timespec){0, -1}, NULL));
    SHOW(syscall(SYS_clock_gettime, 1, (void *)8));
    int sem = semget(IPC_PRIVATE, 3, 0600);
    struct semid_ds status = {0};
    SHOW(semctl(sem, 0, IPC_STAT, &status)), printf("sems %ld\n", (long)status.sem_nsems);
    SHOW(semctl(sem, 1, SETVAL, 5)), SHOW(semctl(sem, 1, GETVAL)), SHOW(semctl(sem, 0, IPC_RMID));
    pid_t child = vfork();
    if (!child) _exit(9);
    int status_of;
    waitpid(child, &status_of, 0), printf("vfork: %d\n", WEXITSTATUS(status_of));
    child = syscall(SYS_fork);
    if (!child) _exit(8);
    waitpid(child, &status_of, 0), printf("fork: %d\n", WEXITSTATUS(status_of));
    SHOW(execl("/nonexistent", "x", NULL)), SHOW(execl("/etc/passwd", "x", NULL));
}

static void sockets(void) {
    int pair[2], fds[2];
    SHOW(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK)) perror("pipe2");
    SHOW(fcntl(fds[0], F_GETFL) & ~KERNEL_LARGEFILE);
    char byte = 'b', control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(header), &fds[1], sizeof(int));
    SHOW(sendmsg(pair[0], &message, 0)), SHOW(recvmsg(pair[1], &message, 0));
    int passed;
    memcpy(&passed, CMSG_DATA(header), sizeof passed);
    SHOW(write(passed, "ok", 2));
    char text[3] = "";
    SHOW(read(fds[0], text, 2)), puts(text);
}

int main(int argc, char **argv) {
    if (argc < 2 || chdir(argv[1])) return 1;
    setvbuf(stdout, NULL, _IONBF, 0), umask(022), errno = 0;
    files(), waiting(), sockets(), processes();
    return 0;
}
