// Two processes and the kernel objects that they share: a pipe, a socket pair, epoll, a timer, an event counter, signal
// handlers on an alternate stack.
// usage: events ROUNDS
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long signals;

static void count(int signal) { signals++; }

static void answer(int questions, int answers) {
    long value;
    while (read(questions, &value, sizeof value) == sizeof value) {
        value = value * 3 + 1;
        write(answers, &value, sizeof value);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    long rounds = atol(argv[1]), value = 1, asked = 0, expirations;
    int pipe_ends[2], pair[2];
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, 0);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = count, .sa_flags = SA_ONSTACK | SA_RESTART}, 0);
    signal(SIGUSR2, SIG_IGN);
    pipe(pipe_ends);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    int child = fork();
    if (child == 0) {
        close(pipe_ends[1]);
        answer(pipe_ends[0], pair[1]);
    }
    int timer = timerfd_create(CLOCK_MONOTONIC, 0), events = eventfd(0, EFD_SEMAPHORE), poll = epoll_create1(0);
    // Once at a time: CRIU restores a periodic timer that has expired and was not read yet as one that is off.
    struct itimerspec tick = {{0, 0}, {0, 5000000}};
    timerfd_settime(timer, 0, &tick, 0);
    epoll_ctl(poll, EPOLL_CTL_ADD, timer, &(struct epoll_event){EPOLLIN, {.fd = timer}});
    epoll_ctl(poll, EPOLL_CTL_ADD, pair[0], &(struct epoll_event){EPOLLIN, {.fd = pair[0]}});
    for (long round = 0; round < rounds;) {
        struct epoll_event event;
        if (epoll_wait(poll, &event, 1, -1) != 1)
            continue;
        if (event.data.fd == timer) {
            read(timer, &expirations, sizeof expirations);
            timerfd_settime(timer, 0, &tick, 0);
            eventfd_write(events, 1);
            raise(SIGUSR1);
            // Who asks again before the last answer is there gets a sequence that depends on time.
            if (asked == round) {
                asked++;
                write(pipe_ends[1], &value, sizeof value);
            }
        } else {
            read(pair[0], &value, sizeof value);
            value %= 1000003;
            printf("%ld %ld\n", ++round, value);
            fflush(stdout);
        }
    }
    close(pipe_ends[1]);
    waitpid(child, 0, 0);
    return 0;
}
