// Threads: creation, thread-local storage, locks, thread-directed signals, exit. Prints the same natively and
// translated.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 2000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long shared, turn, atomic;
static _Thread_local long local;
static volatile int signalled;
static sem_t woken;

static void *count(void *number) {
    for (int n = 0; n < ROUNDS; n++) {
        pthread_mutex_lock(&lock), shared++, pthread_mutex_unlock(&lock);
        __atomic_fetch_add(&atomic, 1, __ATOMIC_SEQ_CST);
        local += (long)number;
    }
    for (int n = 0; n < 20; n++) {
        pthread_mutex_lock(&lock);
        while (turn % THREADS != (long)number) pthread_cond_wait(&changed, &lock);
        turn++, pthread_cond_broadcast(&changed), pthread_mutex_unlock(&lock);
    }
    return (void *)local;
}

static void on_signal(int signal) {
    (void)signal;
    signalled += local == 77;
    sem_post(&woken);
}

// The signal is blocked except while asleep: one that came between looking and sleeping would be slept through.
static void *sleeper(void *unused) {
    sigset_t blocked, awake;
    sigemptyset(&blocked), sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, &awake);
    local = 77, sem_post(&woken);
    while (!signalled) sigsuspend(&awake);
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    long sum = 0;
    for (int again = 0; again < 3; again++) {
        for (long n = 0; n < THREADS; n++) pthread_create(&threads[n], NULL, count, (void *)n);
        for (long n = 0; n < THREADS; n++) {
            void *result;
            pthread_join(threads[n], &result), sum += (long)result;
        }
    }
    printf("%ld %ld %ld %ld\n", shared, atomic, turn, sum);
    for (int n = 0; n < 300; n++) {
        pthread_create(&threads[0], NULL, (void *(*)(void *))(void *)getpid, NULL);
        pthread_join(threads[0], NULL);
    }
    sem_init(&woken, 0, 0), signal(SIGUSR1, on_signal);
    pthread_create(&threads[0], NULL, sleeper, NULL), sem_wait(&woken);
    pthread_kill(threads[0], SIGUSR1), sem_wait(&woken), pthread_join(threads[0], NULL);
    printf("signalled %d\n", signalled);
    fflush(stdout);
    pthread_create(&threads[0], NULL, sleeper, NULL);
    _exit(3);
}
