// Four threads that share work: each takes the next numbered item, computes on it, and hands the result to a fifth
// part of the program through a bounded queue. On SIGTERM, or after as many items as its argument says, it prints how
// many items there were and one checksum of all; that must not depend on which thread did what, nor where.
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROOM = 8, STEPS = 2000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static uint64_t queue[ROOM];
static unsigned used;
static atomic_ullong next, computed;
static atomic_int stop;
static unsigned long long limit = ~0ull;
static __thread uint64_t own; // what this thread alone counts

static void on_term(int signal) { (void)signal; atomic_store(&stop, 1); }

static uint64_t compute(uint64_t item) {
    uint64_t x = item * 0x9e3779b97f4a7c15u + 1;
    double d = (double)item;
    for (int i = 0; i < STEPS; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        d = sqrt(d + (double)(x >> 40));
    }
    return x ^ (uint64_t)(d * 1e6);
}

static void *worker(void *sum) {
    for (;;) {
        if (atomic_load(&stop)) break;
        unsigned long long item = atomic_fetch_add(&next, 1);
        if (item >= limit) break;
        uint64_t result = compute(item);
        own++;
        atomic_fetch_add(&computed, 1);
        pthread_mutex_lock(&lock);
        while (used == ROOM) pthread_cond_wait(&emptied, &lock);
        queue[used++] = result;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    *(uint64_t *)sum += own;
    pthread_mutex_unlock(&lock);
    return 0;
}

static atomic_int finished;
static uint64_t checksum, taken;

static void *collector(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!used && !atomic_load(&finished)) pthread_cond_wait(&filled, &lock);
        if (!used) break;
        checksum += queue[--used], taken++;
        pthread_cond_signal(&emptied);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) limit = strtoull(argv[1], 0, 10);
    struct sigaction action = { .sa_handler = on_term };
    sigaction(SIGTERM, &action, 0);
    pthread_t workers[THREADS], last;
    uint64_t sum = 0;
    pthread_create(&last, 0, collector, 0);
    for (int i = 0; i < THREADS; i++) pthread_create(&workers[i], 0, worker, &sum);
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i], 0);
    pthread_mutex_lock(&lock);
    atomic_store(&finished, 1);
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
    pthread_join(last, 0);
    printf("%llu items, checksum %016llx, %s\n", (unsigned long long)taken, (unsigned long long)checksum,
           sum == taken && taken == computed ? "none lost" : "SOME LOST");
    return 0;
}
