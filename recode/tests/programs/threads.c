// Four threads take turns at adding to a sum; the main thread prints it.
// usage: threads ROUNDS
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static long rounds, turn, sum;
static __thread long mine;

static void *work(void *argument) {
    long self = (long)argument;
    for (long round = 0; round < rounds; round++) {
        pthread_mutex_lock(&lock);
        while (turn % THREADS != self)
            pthread_cond_wait(&turned, &lock);
        mine += round * (self + 1);
        sum += mine;
        turn++;
        if (self == THREADS - 1) {
            printf("%ld %ld\n", round, sum);
            fflush(stdout);
            nanosleep(&(struct timespec){0, 5000000}, 0);
        }
        pthread_cond_broadcast(&turned);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    rounds = atol(argv[1]);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (long i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    return 0;
}
