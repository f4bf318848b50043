// Threads, which wait for their turns at a condition, with data, names and blocked signals of their own.
#include "round.h"
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#define THREADS 4

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static long round_number, answers;
static __thread long own;
static pthread_t threads[THREADS];

static void *work(void *number) {
    char name[16] = "worker ", now[16];
    name[7] = '0' + (long)number;
    sigset_t mine, blocked;
    sigemptyset(&mine);
    sigaddset(&mine, 40 + (long)number);
    CHECK(prctl(PR_SET_NAME, name) == 0 && pthread_sigmask(SIG_BLOCK, &mine, 0) == 0);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    for (;;) {
        while (own == round_number)
            CHECK(pthread_cond_wait(&asked, &mutex) == 0);
        own++;
        CHECK(pthread_mutex_unlock(&mutex) == 0);
        CHECK(own == round_number && prctl(PR_GET_NAME, now) == 0 && strcmp(now, name) == 0);
        CHECK(pthread_sigmask(SIG_BLOCK, 0, &blocked) == 0 && memcmp(&blocked, &mine, 8) == 0);
        CHECK(pthread_barrier_wait(&barrier) <= 0);
        CHECK(pthread_mutex_lock(&mutex) == 0);
        answers++;
        CHECK(pthread_cond_signal(&answered) == 0);
    }
}

static void prepare(void) {
    CHECK(pthread_barrier_init(&barrier, 0, THREADS) == 0);
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], 0, work, (void *)i) == 0);
}

static void *once(void *value) {
    own = (long)value;
    return (void *)(own + 1);
}

static void check(long step) {
    CHECK(pthread_mutex_lock(&mutex) == 0);
    answers = 0;
    round_number++;
    CHECK(pthread_cond_broadcast(&asked) == 0);
    while (answers < THREADS)
        CHECK(pthread_cond_wait(&answered, &mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    CHECK(own == 0);
    // New ones come and go, too.
    pthread_t other;
    void *result;
    CHECK(pthread_create(&other, 0, once, (void *)step) == 0);
    CHECK(pthread_join(other, &result) == 0 && result == (void *)(step + 1));
}
