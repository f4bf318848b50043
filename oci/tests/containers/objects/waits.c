// Children that wait in a system call each when they are stopped; it goes on, and gives what it would have given.
// (CRIU has poll, nanosleep and a futex with a time limit end with EINTR.)
#include "round.h"
#include <linux/futex.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define WAYS 9

static volatile struct {
    int futex;
    long waits, answers[WAYS];
} *shared;
static int pipes[WAYS][2], server[2];
static char byte;

static long sleep_on(int value, const struct timespec *patience) {
    return TEMP_FAILURE_RETRY(syscall(SYS_futex, &shared->futex, FUTEX_WAIT, value, patience));
}

static void wait_for(int way) {
    int input = pipes[way][0];
    struct pollfd one = {input, POLLIN, 0};
    fd_set set;
    struct timespec start, end, patience = {100, 0}, left = {0, 30000000};
    switch (way) {
    case 0:
        break;
    case 1:
        CHECK(TEMP_FAILURE_RETRY(poll(&one, 1, -1)) == 1 && one.revents == POLLIN);
        break;
    case 2:
        CHECK(TEMP_FAILURE_RETRY(poll(&one, 1, 100000)) == 1 && one.revents == POLLIN);
        break;
    case 3:
        CHECK(ppoll(&one, 1, &patience, 0) == 1);
        break;
    case 4:
        FD_ZERO(&set);
        FD_SET(input, &set);
        CHECK(select(input + 1, &set, 0, 0, &(struct timeval){100, 0}) == 1 && FD_ISSET(input, &set));
        break;
    case 5:
        // With a timeout and without, in turns.
        for (int woken = 0; !woken;) {
            int value = shared->futex;
            woken = value % 2 == 1;
            if (!woken)
                CHECK(sleep_on(value, shared->waits++ % 2 ? &patience : 0) == 0 || errno == EAGAIN);
        }
        shared->futex++;
        break;
    case 6:
        CHECK(recv(server[0], &byte, 1, 0) == 1);
        break;
    case 7: {
        pid_t child = fork();
        if (child == 0)
            _exit(read(input, &byte, 1) == 1 ? 7 : 8);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
        return;
    }
    case 8:
        CHECK(clock_gettime(CLOCK_MONOTONIC, &start) == 0);
        CHECK(TEMP_FAILURE_RETRY(nanosleep(&left, &left)) == 0);
        CHECK(clock_gettime(CLOCK_MONOTONIC, &end) == 0);
        CHECK((end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec >= 30000000);
        break;
    }
    CHECK(read(input, &byte, 1) == 1);
}

static void prepare(void) {
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED && socketpair(AF_UNIX, SOCK_STREAM, 0, server) == 0);
    for (int way = 0; way < WAYS; way++) {
        CHECK(pipe(pipes[way]) == 0);
        if (fork() == 0)
            for (;; shared->answers[way]++)
                wait_for(way);
    }
}

static void check(long step) {
    for (int way = 0; way < WAYS; way++) {
        CHECK(shared->answers[way] == step);
        CHECK(write(pipes[way][1], "x", 1) == 1);
    }
    CHECK(send(server[1], "x", 1, 0) == 1);
    shared->futex++;
    CHECK(syscall(SYS_futex, &shared->futex, FUTEX_WAKE, 1) >= 0);
    for (int way = 0; way < WAYS; way++)
        while (shared->answers[way] == step)
            usleep(500);
}
