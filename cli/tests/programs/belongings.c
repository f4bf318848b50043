// Holds one of each thing that the kernel keeps for a process, and says every 20 ms what they all look like: every line has
// to be the same. Ends on SIGTERM with what went on meanwhile.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static volatile sig_atomic_t alarms, timeouts, stop;
static int file, again, log_file, unlinked, pipe_ends[2], pair[2], events, waiting, ticks, fifo;
static timer_t timer;
static char *shared, *private_copy;

static void on_alarm(int signal) { alarms++; }
static void on_timer(int signal, siginfo_t *info, void *context) { timeouts += info->si_value.sival_int; }
static void on_stop(int signal) { stop = 1; }

static void say_signals(void) {
    sigset_t set;
    struct sigaction action;
    stack_t stack;
    for (int pass = 0; pass < 2; pass++) {
        pass ? sigpending(&set) : sigprocmask(SIG_BLOCK, 0, &set);
        printf(pass ? " pending" : " blocked");
        for (int signal = 1; signal < 64; signal++)
            if (sigismember(&set, signal))
                printf(",%d", signal);
    }
    printf(" handlers");
    for (int signal = 1; signal < 32; signal++)
        if (sigaction(signal, 0, &action) == 0 && action.sa_handler != SIG_DFL)
            printf(",%d:%d:%x", signal, action.sa_handler == SIG_IGN, action.sa_flags);
    sigaltstack(0, &stack);
    printf(" stack %p+%zu:%x", stack.ss_sp, stack.ss_size, stack.ss_flags);
}

static void say_files(void) {
    struct stat status;
    struct pollfd ready[] = {{pipe_ends[0], POLLIN}, {pair[1], POLLIN}, {events, POLLIN}, {fifo, POLLIN}};
    char peeked[16] = "", of_file[8] = "", of_unlinked[8] = "";
    printf(" offset %ld=%ld flags %x,%x,%x cloexec %d,%d", lseek(file, 0, SEEK_CUR), lseek(again, 0, SEEK_CUR),
           fcntl(file, F_GETFL), fcntl(log_file, F_GETFL), fcntl(pipe_ends[0], F_GETFL), fcntl(file, F_GETFD),
           fcntl(again, F_GETFD));
    pread(file, of_file, 5, 3);
    pread(unlinked, of_unlinked, 4, 0);
    fstat(unlinked, &status);
    printf(" read %s,%s links %lu", of_file, of_unlinked, status.st_nlink);
    recv(pair[1], peeked, sizeof peeked - 1, MSG_PEEK);
    poll(ready, 4, 0);
    printf(" ready %x,%x,%x,%x peeked %s", ready[0].revents, ready[1].revents, ready[2].revents, ready[3].revents, peeked);
    struct epoll_event event = {0};
    int found = epoll_wait(waiting, &event, 1, 0);
    printf(" epoll %d:%lx shared %s private %s", found, (unsigned long)event.data.u64, shared, private_copy);
}

static void say_process(char **argv) {
    char directory[256] = "", name[32] = "";
    struct rlimit limit;
    struct itimerspec left;
    getcwd(directory, sizeof directory);
    prctl(PR_GET_NAME, name);
    getrlimit(RLIMIT_STACK, &limit);
    timer_gettime(timer, &left);
    printf(" cwd %s name %s arguments %s,%s environment %s limit %lx mask %o ids %d,%d,%d,%d,%d timer %ld", directory, name,
           argv[0], argv[1], getenv("GREETING"), (unsigned long)limit.rlim_cur, (int)umask(027), getpid(), getsid(0),
           getpgrp(), getuid(), getegid(), left.it_interval.tv_nsec);
}

static void acquire(void) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigset_t set;
    sigaltstack(&stack, 0);
    signal(SIGHUP, SIG_IGN);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_ONSTACK}, 0);
    sigaction(SIGUSR2, &(struct sigaction){.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART}, 0);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_stop}, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGRTMIN + 3);
    sigprocmask(SIG_BLOCK, &set, 0);
    raise(SIGUSR1);
    sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 77});
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 10000}, {0, 10000}}, 0);
    struct sigevent notice = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2, .sigev_value.sival_int = 3};
    timer_create(CLOCK_MONOTONIC, &notice, &timer);
    timer_settime(timer, 0, &(struct itimerspec){{0, 15000000}, {0, 15000000}}, 0);

    file = open("/data/text", O_RDWR | O_CLOEXEC);
    lseek(file, 7, SEEK_SET);
    again = dup(file);
    log_file = open("/data/log", O_WRONLY | O_APPEND | O_CREAT, 0640);
    unlinked = open("/data/secret", O_RDWR | O_CREAT, 0600);
    write(unlinked, "gone", 4);
    unlink("/data/secret");
    pipe2(pipe_ends, O_NONBLOCK);
    write(pipe_ends[1], "in the pipe", 11);
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    send(pair[0], "in the pair", 11, 0);
    events = eventfd(41, 0);
    mkfifo("/data/fifo", 0600);
    fifo = open("/data/fifo", O_RDWR);
    write(fifo, "in the fifo", 11);
    waiting = epoll_create1(0);
    epoll_ctl(waiting, EPOLL_CTL_ADD, events, &(struct epoll_event){EPOLLIN, {.u64 = 0x123456789abc}});
    ticks = timerfd_create(CLOCK_MONOTONIC, 0);
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    private_copy = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    strcpy(private_copy, "mine");
    prctl(PR_SET_NAME, "porter");
    setrlimit(RLIMIT_STACK, &(struct rlimit){4 << 20, 4 << 20});
    umask(027);
}

int main(int argc, char **argv) {
    acquire();
    while (!stop) {
        printf("state");
        say_signals();
        say_files();
        say_process(argv);
        printf("\n");
        fflush(stdout);
        write(log_file, ".", 1);
        timerfd_settime(ticks, 0, &(struct itimerspec){{0, 0}, {0, 20000000}}, 0);
        long expirations;
        while (read(ticks, &expirations, sizeof expirations) != sizeof expirations && !stop)
            ;
    }
    char in_pipe[16] = "", in_fifo[16] = "";
    siginfo_t queued;
    sigset_t set;
    long count;
    read(pipe_ends[0], in_pipe, 15);
    read(fifo, in_fifo, 15);
    read(events, &count, sizeof count);
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 3);
    sigwaitinfo(&set, &queued);
    printf("end: %s, %s, %ld events, %d queued, timers %s\n", in_pipe, in_fifo, count, queued.si_value.sival_int,
           alarms > 10 && timeouts > 30 ? "ran" : "stood");
    return 0;
}
