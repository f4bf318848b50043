// What a signal does to calls that block, with and without SA_RESTART; order, values and masks of signals; timers,
// children and stacks. Prints the same natively and translated. A second argument leaves out calls that emulators of a user's side of
// Linux do not know.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int caught;
static int pipes[2], sockets[2], go[2], epoll, semaphores, messages, lock_file;
static int futex_word, emulated;

static void on_signal(int signal) { (void)signal, caught++; }

static void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(signal, &action, NULL);
}

// Calls that block for ever, or with a timeout longer than the test.
static long block(int kind) {
    char byte;
    struct timespec time = {30, 0};
    struct timeval micro = {30, 0};
    struct pollfd fd = {pipes[0], POLLIN, 0};
    struct epoll_event event;
    struct sembuf operation = {0, -1, 0};
    struct { long type; char text[8]; } message;
    struct iovec part = {&byte, 1};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    fd_set set;
    sigset_t none;
    siginfo_t info;
    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    sigemptyset(&none);
    switch (kind) {
    case 0: return read(pipes[0], &byte, 1);
    case 1: return recv(sockets[0], &byte, 1, 0);
    case 2: return recvmsg(sockets[0], &header, 0);
    case 3: return poll(&fd, 1, 30000);
    case 4: return poll(&fd, 1, -1);
    case 5: return ppoll(&fd, 1, &time, NULL);
    case 6: return select(pipes[0] + 1, &set, NULL, NULL, &micro);
    case 7: return pselect(pipes[0] + 1, &set, NULL, NULL, NULL, &none);
    case 8: return epoll_wait(epoll, &event, 1, 30000);
    case 9: return epoll_pwait(epoll, &event, 1, -1, &none);
    case 10: return semop(semaphores, &operation, 1);
    case 11: return msgrcv(messages, &message, 8, 0, 0);
    case 12: return flock(lock_file, LOCK_EX);
    case 13: return syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, NULL, NULL, 0);
    case 14: return syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, &time, NULL, 0);
    case 15: return nanosleep(&time, NULL);
    case 16: return errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL), errno ? -1 : 0;
    case 17: return pause();
    case 18: return sigsuspend(&none);
    case 19: return sigtimedwait(&none, &info, &time);
    case 20: return sigwaitinfo(&none, &info);
    case 21: return waitpid(-1, NULL, 0);
    case 22: return open("fifo", O_RDONLY);
    case 23: return readv(pipes[0], &part, 1);
    case 24: return preadv2(pipes[0], &part, 1, -1, 0);
    case 25: return syscall(SYS_epoll_pwait2, epoll, &event, 1, &time, NULL, 0);
    case 26: { struct flock whole = {.l_type = F_WRLCK}; return fcntl(lock_file, F_SETLKW, &whole); }
    case 27: { siginfo_t child; return waitid(P_ALL, 0, &child, WEXITED); }
    case 28: { socklen_t size = 0; return recvfrom(sockets[0], &byte, 1, 0, NULL, &size); }
    case 29: { struct timeval limit = {20, 0};
        setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        long result = recv(sockets[0], &byte, 1, 0);
        limit.tv_sec = 0;
        setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        return result; }
    default: return -2;
    }
}

// Let a child end that waits for that.
static void tell(void) { if (write(go[1], "g", 1) < 0) exit(9); }
static void wait_until_told(void) { char byte; if (read(go[0], &byte, 1) < 0) exit(9); }

// What wakes those that are restarted: the pipe, socket and so on get something once the signal has been taken.
static void feed(int kind) {
    struct sembuf up = {0, 1, 0};
    struct { long type; char text[8]; } message = {1, "text"};
    switch (kind) {
    case 1: case 2: case 28: case 29: send(sockets[1], "s", 1, 0); break;
    case 10: semop(semaphores, &up, 1); break;
    case 11: msgsnd(messages, &message, 8, 0); break;
    case 13: case 14: futex_word = 1; syscall(SYS_futex, &futex_word, FUTEX_WAKE, 1, NULL, NULL, 0); break;
    case 22: close(open("fifo", O_WRONLY)); break;
    case 12: case 21: case 26: case 27: tell(); break;
    default: if (write(pipes[1], "p", 1) < 0) exit(9);
    }
}

static pthread_t main_thread;
static volatile int stage, current;

// Twice a signal, each once the main thread sleeps in its call; then food for what has been made again.
static void *disturber(void *unused) {
    char path[40], text[40], state = 0;
    for (int round = 0; round < 2; round++) {
        for (int seen = 0; seen < 3;) {
            snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
            int fd = open(path, O_RDONLY);
            ssize_t length = read(fd, text, sizeof text - 1);
            close(fd);
            text[length > 0 ? length : 0] = 0;
            state = strrchr(text, ')') ? strrchr(text, ')')[2] : 0;
            seen = state == 'S' ? seen + 1 : 0;
            if (stage == 2) return unused;
            usleep(3000);
        }
        if (round == 0) pthread_kill(main_thread, SIGUSR1);
        else feed(current);
    }
    return unused;
}

static void interruptions(int flags, const char *name) {
    handle(SIGUSR1, on_signal, flags);
    for (int kind = 0; kind < 30; kind++) {
        if (emulated && (kind == 24 || kind == 25)) continue;
        pthread_t thread;
        pid_t child = 0;
        // A child holds the lock, or is waited for, until it is told to end.
        if (pipe(go)) exit(9);
        if (kind == 12 || kind == 21 || kind == 26 || kind == 27) {
            int ready[2];
            if (pipe(ready)) exit(9);
            if ((child = fork()) == 0) {
                int own = open("lock", O_RDWR);
                struct flock whole = {.l_type = F_WRLCK};
                flock(own, LOCK_EX), fcntl(own, F_SETLK, &whole);
                if (write(ready[1], "r", 1) < 0) exit(9);
                wait_until_told();
                _exit(3);
            }
            char byte;
            if (read(ready[0], &byte, 1) < 0) exit(9);
            close(ready[0]), close(ready[1]);
        }
        current = kind, stage = 1, caught = 0, futex_word = 0;
        // A call that nothing ends but a signal gets no food.
        pthread_create(&thread, NULL, disturber, NULL);
        errno = 0;
        long result = block(kind);
        int error = errno;
        stage = 2;
        pthread_join(thread, NULL);
        if (result > 2) result = kind == 22 ? (close(result), 1) : 99;
        printf("%s %d: %ld %s, caught %d\n", name, kind, result, strerror(error), caught);
        if (child) tell(), waitpid(child, NULL, 0);
        close(go[0]), close(go[1]);
        flock(lock_file, LOCK_UN);
        fcntl(pipes[0], F_SETFL, O_NONBLOCK);
        char rest[64];
        while (read(pipes[0], rest, sizeof rest) > 0) {}
        fcntl(pipes[0], F_SETFL, 0);
        while (recv(sockets[0], rest, sizeof rest, MSG_DONTWAIT) > 0) {}
    }
}

static char order[400];
static void on_info(int signal, siginfo_t *info, void *context) {
    (void)context;
    sprintf(order + strlen(order), " %d:%d:%d", signal < SIGRTMIN ? signal : signal - SIGRTMIN + 100, info->si_code == SI_TKILL || info->si_code == SI_USER ? 0 : info->si_value.sival_int, info->si_code);
}

static void queued(void) {
    sigset_t all, old;
    sigfillset(&all);
    struct sigaction action = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO, .sa_mask = all};
    int signals[] = {SIGUSR2, SIGHUP, SIGRTMIN, SIGRTMIN + 3, SIGWINCH};
    for (int n = 0; n < 5; n++) sigaction(signals[n], &action, NULL);
    sigprocmask(SIG_BLOCK, &all, &old);
    for (int n = 0; n < 12; n++) sigqueue(getpid(), signals[(n * 7 + 3) % 5], (union sigval){.sival_int = n});
    sigset_t pending;
    sigpending(&pending);
    printf("pending %d %d %d\n", sigismember(&pending, SIGRTMIN), sigismember(&pending, SIGHUP), sigismember(&pending, SIGINT));
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("order%s\n", order);
    order[0] = 0;
    raise(SIGUSR2), kill(getpid(), SIGHUP);
    printf("raised%s\n", order);
    // Taken by waiting, not by handlers.
    sigprocmask(SIG_BLOCK, &all, &old);
    order[0] = 0;
    for (int n = 0; n < 4; n++) sigqueue(getpid(), SIGRTMIN + (n & 1) * 3, (union sigval){.sival_int = n});
    siginfo_t info;
    int fd = signalfd(-1, &all, SFD_NONBLOCK);
    struct signalfd_siginfo first;
    if (read(fd, &first, sizeof first) == sizeof first)
        printf("signalfd %d %d\n", (int)first.ssi_signo - SIGRTMIN, (int)first.ssi_int);
    for (int n = 0; n < 3; n++) {
        int got = sigtimedwait(&all, &info, &(struct timespec){1, 0});
        printf("waited %d %d\n", got - SIGRTMIN, info.si_value.sival_int);
    }
    int none = sigtimedwait(&all, &info, &(struct timespec){0, 1000});
    printf("none: %d %s\n", none, strerror(errno));
    sigprocmask(SIG_SETMASK, &old, NULL);
}

static volatile int depth, deepest, entered;
static void nested(int signal) {
    if (++depth > deepest) deepest = depth;
    if (++entered < 4) raise(signal);
    depth--;
}

static sigjmp_buf jump;
static void jumping(int signal) { siglongjmp(jump, signal); }

static void flags(void) {
    handle(SIGUSR1, nested, SA_NODEFER);
    raise(SIGUSR1);
    printf("nested %d", deepest), deepest = entered = 0;
    handle(SIGUSR1, nested, 0);
    raise(SIGUSR1);
    printf(" deferred %d\n", deepest);
    handle(SIGWINCH, on_signal, SA_RESETHAND);
    caught = 0;
    raise(SIGWINCH), raise(SIGWINCH);
    struct sigaction now;
    sigaction(SIGWINCH, NULL, &now);
    printf("reset %d %d %x\n", caught, now.sa_handler == SIG_DFL, now.sa_flags);
    handle(SIGUSR2, jumping, 0);
    for (volatile int n = 0; n < 3; n++) {
        int came = sigsetjmp(jump, 1);
        if (came == 0) raise(SIGUSR2);
        sigset_t mask;
        sigprocmask(SIG_BLOCK, NULL, &mask);
        printf("jumped with %d, blocked %d\n", came, sigismember(&mask, SIGUSR2));
    }
}

static char stack[1 << 16];
static void where(int signal, siginfo_t *info, void *context) {
    (void)info;
    char here;
    stack_t now;
    sigaltstack(NULL, &now);
    ucontext_t *c = context;
    printf("signal %d: on it %d, flags %x, saved %x %d\n", signal, &here > stack && &here < stack + sizeof stack,
           now.ss_flags, c->uc_stack.ss_flags, c->uc_stack.ss_size == sizeof stack);
}

static void stacks(void) {
    unsigned kinds[] = {0, 1u << 31};
    for (int n = 0; n < 2; n++) {
        stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = kinds[n]};
        printf("set %d\n", sigaltstack(&alternate, NULL));
        struct sigaction action = {.sa_sigaction = where, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
        stack_t now;
        sigaltstack(NULL, &now);
        printf("after %x %d\n", now.ss_flags, now.ss_size == sizeof stack);
    }
    stack_t small = {.ss_sp = stack, .ss_size = 100}, none = {.ss_flags = SS_DISABLE}, bad = {.ss_flags = 77, .ss_size = 99999};
    printf("small %d %d", sigaltstack(&small, NULL), errno == ENOMEM);
    printf(" bad %d %d", sigaltstack(&bad, NULL), errno == EINVAL);
    printf(" none %d\n", sigaltstack(&none, NULL));
}

static void timers(void) {
    handle(SIGALRM, on_signal, 0);
    caught = 0;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1, .sigev_value.sival_int = 55};
    event._sigev_un._tid = gettid();
    struct sigaction action = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN + 1, &action, NULL);
    timer_t timer;
    order[0] = 0;
    printf("timer %d", timer_create(CLOCK_MONOTONIC, &event, &timer));
    timer_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, 20000000}}, NULL);
    printf(" %d", nanosleep(&(struct timespec){5, 0}, NULL));
    printf("%s\n", order);
    timer_delete(timer);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 5000}, {0, 5000}}, NULL);
    while (caught < 20) pause();
    // Also of code that makes no system call.
    while (caught < 40) {}
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    printf("ticked\n");
}

static volatile int children[3];
static void on_child(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    children[info->si_code == CLD_EXITED ? 0 : info->si_code == CLD_STOPPED ? 1 : 2]++;
}

static void jobs(void) {
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO};
    sigaction(SIGCHLD, &action, NULL);
    if (pipe(go)) exit(9);
    pid_t pid = fork();
    if (pid == 0) {
        raise(SIGSTOP);
        wait_until_told();
        _exit(4);
    }
    int status;
    waitpid(pid, &status, WUNTRACED);
    printf("stopped %d by %d", WIFSTOPPED(status), WSTOPSIG(status));
    kill(pid, SIGCONT);
    // Signals of children do not queue: the first is to be handled before the second comes.
    while (!children[2]) usleep(1000);
    tell();
    while (waitpid(pid, &status, 0) != pid) {}
    close(go[0]), close(go[1]);
    printf(", ended %d with %d; told %d %d %d\n", WIFEXITED(status), WEXITSTATUS(status), children[0] > 0, children[1], children[2] > 0);
    action.sa_flags = SA_SIGINFO | SA_NOCLDWAIT;
    sigaction(SIGCHLD, &action, NULL);
    if (fork() == 0) _exit(0);
    while (wait(NULL) >= 0 || errno != ECHILD) {}
    printf("no zombie\n");
    signal(SIGCHLD, SIG_DFL);
    // Dying by each of these shows in the status, as if nobody had stood between.
    int deaths[] = {SIGTERM, SIGSEGV, SIGABRT, SIGFPE, SIGRTMIN + 5, SIGSYS, SIGXCPU, SIGPIPE};
    for (int n = 0; n < 8; n++) {
        if ((pid = fork()) == 0) signal(deaths[n], SIG_DFL), raise(deaths[n]), _exit(0);
        waitpid(pid, &status, 0);
        printf("%d ", WIFSIGNALED(status) ? WTERMSIG(status) == deaths[n] : -1);
    }
    sigset_t set, old;
    sigemptyset(&set), sigaddset(&set, SIGUSR1), sigaddset(&set, SIGRTMIN + 2);
    sigprocmask(SIG_BLOCK, &set, &old);
    raise(SIGUSR1);
    if ((pid = fork()) == 0) {
        sigset_t mask, pending;
        sigprocmask(SIG_BLOCK, NULL, &mask), sigpending(&pending);
        _exit(sigismember(&mask, SIGUSR1) + 2 * sigismember(&mask, SIGRTMIN + 2) + 4 * sigismember(&pending, SIGUSR1));
    }
    waitpid(pid, &status, 0);
    printf("inherited %d\n", WEXITSTATUS(status));
    siginfo_t info;
    sigtimedwait(&set, &info, &(struct timespec){0, 0});
    sigprocmask(SIG_SETMASK, &old, NULL);
}

static volatile long count, stop;
static void *preempted(void *unused) {
    while (!stop) count++;
    return unused;
}

// As Go does it: SIGURG to threads that run, until they have seen it often enough.
static void preemption(void) {
    pthread_t thread;
    handle(SIGURG, on_signal, SA_RESTART | SA_ONSTACK);
    caught = 0;
    pthread_create(&thread, NULL, preempted, NULL);
    for (int n = 0; n < 200; n++) {
        int before = caught;
        pthread_kill(thread, SIGURG);
        while (caught == before) sched_yield();
    }
    printf("preempted %d\n", caught);
    stop = 1;
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (chdir(argv[1])) return 9;
    main_thread = pthread_self();
    if (pipe(pipes) || socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets)) return 9;
    epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event);
    semaphores = semget(IPC_PRIVATE, 1, 0600), messages = msgget(IPC_PRIVATE, 0600);
    lock_file = open("lock", O_RDWR | O_CREAT, 0600);
    mkfifo("fifo", 0600);
    queued(), flags(), stacks(), timers(), jobs(), preemption();
    emulated = argc > 2;
    interruptions(0, "plain"), interruptions(SA_RESTART, "restart");
    semctl(semaphores, 0, IPC_RMID), msgctl(messages, IPC_RMID, NULL);
    return 0;
}
