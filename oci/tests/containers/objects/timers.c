// Timers, which go off again and again, late, or at a point of a clock, and clocks that do not jump.
#include "round.h"
#include <signal.h>
#include <sys/time.h>

static timer_t again, late;
static volatile int alarms, expirations;
static double before, left[2], offset;

static void count(int signal, siginfo_t *info, void *context) {
    if (signal == SIGALRM) {
        alarms++;
    } else {
        CHECK(info->si_code == SI_TIMER && info->si_value.sival_int == 1234);
        expirations++;
    }
}

static double clock_is(clockid_t clock) {
    struct timespec now;
    CHECK(clock_gettime(clock, &now) == 0);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static timer_t made(clockid_t clock, int notify, struct itimerspec times) {
    struct sigevent event = {.sigev_notify = notify, .sigev_signo = SIGRTMIN, .sigev_value = {1234}};
    timer_t timer;
    CHECK(timer_create(clock, &event, &timer) == 0 && timer_settime(timer, 0, &times, 0) == 0);
    return timer;
}

static void prepare(void) {
    struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO | SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, 0) == 0 && sigaction(SIGRTMIN, &action, 0) == 0);
    CHECK(setitimer(ITIMER_REAL, &(struct itimerval){{0, 5000}, {0, 5000}}, 0) == 0);
    CHECK(setitimer(ITIMER_PROF, &(struct itimerval){{70, 0}, {900, 0}}, 0) == 0);
    // Numbers of timers have gaps.
    CHECK(timer_delete(made(CLOCK_REALTIME, SIGEV_NONE, (struct itimerspec){})) == 0);
    again = made(CLOCK_MONOTONIC, SIGEV_SIGNAL, (struct itimerspec){{0, 5000000}, {0, 5000000}});
    late = made(CLOCK_REALTIME, SIGEV_NONE, (struct itimerspec){{0, 0}, {1000, 0}});
    left[0] = 900, left[1] = 1000;
    offset = clock_is(CLOCK_REALTIME) - clock_is(CLOCK_MONOTONIC);
}

static void check(long step) {
    // They are counted anew.
    alarms = expirations = 0;
    while (!alarms || !expirations)
        usleep(500);
    struct itimerval profile;
    CHECK(getitimer(ITIMER_PROF, &profile) == 0 && profile.it_interval.tv_sec == 70);
    double now = profile.it_value.tv_sec + profile.it_value.tv_usec / 1e6;
    CHECK(now <= left[0] + .1 && now > left[0] - 10);
    left[0] = now;
    struct itimerspec times;
    CHECK(timer_gettime(late, &times) == 0 && times.it_interval.tv_sec == 0);
    now = times.it_value.tv_sec + times.it_value.tv_nsec / 1e9;
    CHECK(now <= left[1] && now > left[1] - 30);
    left[1] = now;
    CHECK(timer_gettime(again, &times) == 0 && times.it_interval.tv_nsec == 5000000);
    CHECK((now = clock_is(CLOCK_MONOTONIC)) >= before);
    before = now;
    // It is the clock of a time namespace, which stands still between places; the other one goes on.
    double ahead = clock_is(CLOCK_REALTIME) - now - offset;
    CHECK(ahead > -1 && ahead < 1000);
}
