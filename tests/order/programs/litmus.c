// Two to four threads on the same words, over and over: what x86-64's total store order forbids must not be seen, and
// what is shared is passed on whole. Every access is a plain `mov` that stays where it is written. Prints how often
// something forbidden was seen.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LOAD(from) __atomic_load_n(&(from), __ATOMIC_RELAXED)
#define STORE(to, value) __atomic_store_n(&(to), value, __ATOMIC_RELAXED)
#define COMPILER_BARRIER() __asm__ volatile("" ::: "memory")
#define FENCE() __asm__ volatile("mfence" ::: "memory")

static struct { uint64_t value; char pad[120]; } x, y, z;
static uint64_t round_of, done; // a round that is to be run, and how many threads have
static int rounds;

typedef void body(int self, uint64_t n, uint64_t *seen);
struct test { const char *name; int threads; body *run; int (*forbidden)(uint64_t seen[4][2], uint64_t n); };

// Each word has the number of the round that wrote it: what is older counts as "not yet".
static void passing(int self, uint64_t n, uint64_t *seen) {
    if (self == 0) { STORE(x.value, n); COMPILER_BARRIER(); STORE(y.value, n); }
    else {
        // The word is read early and late; who joins the two does not see what the flag is for.
        uint64_t early = LOAD(x.value), flag = LOAD(y.value), late = LOAD(x.value);
        seen[0] = flag + (early > n), seen[1] = late;
    }
}
static int not_passed(uint64_t seen[4][2], uint64_t n) { return seen[1][0] == n && seen[1][1] != n; }

static void buffering(int self, uint64_t n, uint64_t *seen) {
    if (self == 0) { STORE(x.value, n); FENCE(); seen[0] = LOAD(y.value); }
    else { STORE(y.value, n); FENCE(); seen[0] = LOAD(x.value); }
}
static void buffering_by_exchange(int self, uint64_t n, uint64_t *seen) {
    uint64_t value = n;
    if (self == 0) { __asm__ volatile("xchg %0, %1" : "+r"(value), "+m"(x.value) :: "memory"); seen[0] = LOAD(y.value); }
    else { __asm__ volatile("xchg %0, %1" : "+r"(value), "+m"(y.value) :: "memory"); seen[0] = LOAD(x.value); }
}
static int both_early(uint64_t seen[4][2], uint64_t n) { return seen[0][0] != n && seen[1][0] != n; }

static void load_buffering(int self, uint64_t n, uint64_t *seen) {
    if (self == 0) { seen[0] = LOAD(x.value); COMPILER_BARRIER(); STORE(y.value, n); }
    else { seen[0] = LOAD(y.value); COMPILER_BARRIER(); STORE(x.value, n); }
}
static int both_late(uint64_t seen[4][2], uint64_t n) { return seen[0][0] == n && seen[1][0] == n; }

static void iriw(int self, uint64_t n, uint64_t *seen) {
    if (self == 0) STORE(x.value, n);
    if (self == 1) STORE(y.value, n);
    if (self == 2) { seen[0] = LOAD(x.value); COMPILER_BARRIER(); seen[1] = LOAD(y.value); }
    if (self == 3) { seen[0] = LOAD(y.value); COMPILER_BARRIER(); seen[1] = LOAD(x.value); }
}
static int two_orders(uint64_t s[4][2], uint64_t n) { return s[2][0] == n && s[2][1] != n && s[3][0] == n && s[3][1] != n; }

// Coherence: two loads of one word never go back.
static void coherence(int self, uint64_t n, uint64_t *seen) {
    if (self == 0) STORE(x.value, n);
    else { seen[0] = LOAD(x.value); COMPILER_BARRIER(); seen[1] = LOAD(x.value); }
}
static int went_back(uint64_t seen[4][2], uint64_t n) { (void)n; return seen[1][0] > seen[1][1]; }

// 16 bytes that pass a flag, misaligned and across cache lines.
static char area[256] __attribute__((aligned(128)));
static void vectors(int self, uint64_t n, uint64_t *seen) {
    void *at = area + 59;
    if (self == 0) {
        __asm__ volatile("movq %0, %%xmm0\n punpcklqdq %%xmm0, %%xmm0\n movdqu %%xmm0, (%1)\n mov %0, %2" :: "r"(n), "r"(at), "m"(z.value) : "xmm0", "memory");
    } else {
        __asm__ volatile("mov %2, %0\n movdqu (%3), %%xmm0\n psrldq $8, %%xmm0\n movq %%xmm0, %1" : "=&r"(seen[0]), "=r"(seen[1]) : "m"(z.value), "r"(at) : "xmm0", "memory");
    }
}

static const struct test tests[] = {
    {"message passing", 2, passing, not_passed},
    {"store buffering, mfence", 2, buffering, both_early},
    {"store buffering, xchg", 2, buffering_by_exchange, both_early},
    {"load buffering", 2, load_buffering, both_late},
    {"independent reads of independent writes", 4, iriw, two_orders},
    {"coherence", 2, coherence, went_back},
    {"misaligned vectors", 2, vectors, not_passed},
};

static const struct test *current;
static uint64_t seen[4][2];

static void wait_for(uint64_t *word, uint64_t value) {
    for (int n = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) < value; n++)
        if (n % 64 == 63) sched_yield();
}

static void *thread(void *self) {
    for (uint64_t n = 1; n <= (uint64_t)rounds; n++) {
        wait_for(&round_of, n);
        current->run((int)(long)self, n, seen[(long)self]);
        __atomic_fetch_add(&done, 1, __ATOMIC_ACQ_REL);
    }
    return NULL;
}

static void run(const struct test *test) {
    pthread_t threads[4];
    long forbidden = 0;
    current = test, round_of = done = 0, x.value = y.value = z.value = 0;
    for (long n = 0; n < test->threads; n++) pthread_create(&threads[n], NULL, thread, (void *)n);
    for (uint64_t n = 1; n <= (uint64_t)rounds; n++) {
        __atomic_store_n(&round_of, n, __ATOMIC_RELEASE);
        wait_for(&done, n * test->threads);
        forbidden += test->forbidden(seen, n);
    }
    for (int n = 0; n < test->threads; n++) pthread_join(threads[n], NULL);
    printf("%s: %ld\n", test->name, forbidden);
}

// A sequence lock: the reader loads its word twice, and it must be two loads.
static uint64_t sequence, data[4];
static long torn;
static void *lock_writer(void *unused) {
    for (uint64_t n = 1; n <= (uint64_t)rounds * 20; n++) {
        STORE(sequence, 2 * n - 1);
        for (int i = 0; i < 4; i++) STORE(data[i], n);
        STORE(sequence, 2 * n);
    }
    return unused;
}
static void *lock_reader(void *unused) {
    while (LOAD(sequence) < 2 * (uint64_t)rounds * 20) {
        uint64_t before = LOAD(sequence), got[4];
        if (before & 1) continue;
        for (int i = 0; i < 4; i++) got[i] = LOAD(data[i]);
        if (LOAD(sequence) != before) continue;
        torn += got[0] != got[1] || got[0] != got[2] || got[0] != got[3] || got[0] != before / 2;
    }
    return unused;
}

// A ring from one thread to another.
static uint64_t ring[64], head, tail;
static long misplaced;
static void *producer(void *unused) {
    for (uint64_t n = 0; n < (uint64_t)rounds * 20; n++) {
        while (n - LOAD(tail) == 64) sched_yield();
        STORE(ring[n % 64], n * 3);
        STORE(head, n + 1);
    }
    return unused;
}
static void *consumer(void *unused) {
    for (uint64_t n = 0; n < (uint64_t)rounds * 20; n++) {
        while (LOAD(head) == n) sched_yield();
        misplaced += LOAD(ring[n % 64]) != n * 3;
        STORE(tail, n + 1);
    }
    return unused;
}

// Michael and Scott's queue; nodes are never used twice.
struct node { uint64_t value; struct node *next; };
static struct node *first, *last, *pool;
static uint64_t taken, sum;
static void put(struct node *node) {
    for (;;) {
        struct node *end = LOAD(last), *next = LOAD(end->next);
        if (next) __sync_bool_compare_and_swap(&last, end, next);
        else if (__sync_bool_compare_and_swap(&end->next, NULL, node)) {
            __sync_bool_compare_and_swap(&last, end, node);
            return;
        }
    }
}
static int take(uint64_t *value) {
    for (;;) {
        struct node *start = LOAD(first), *end = LOAD(last), *next = LOAD(start->next);
        if (start != LOAD(first)) continue;
        if (!next) return 0;
        if (start == end) { __sync_bool_compare_and_swap(&last, end, next); continue; }
        *value = LOAD(next->value);
        if (__sync_bool_compare_and_swap(&first, start, next)) return 1;
    }
}
static void *queue_user(void *self) {
    struct node *mine = pool + 1 + (long)self * rounds;
    for (int n = 0; n < rounds; n++) {
        STORE(mine[n].value, (uint64_t)(n + 1));
        put(&mine[n]);
        uint64_t value;
        if (take(&value)) __sync_fetch_and_add(&sum, value), __sync_fetch_and_add(&taken, 1);
    }
    return NULL;
}

// Peterson's lock and Dekker's, with mfence where x86 needs it.
static uint64_t wants[2], turn, counter;
static void *peterson(void *self) {
    int me = (int)(long)self;
    for (int n = 0; n < rounds; n++) {
        STORE(wants[me], 1), STORE(turn, (uint64_t)!me);
        FENCE();
        while (LOAD(wants[!me]) && LOAD(turn) == (uint64_t)!me) sched_yield();
        STORE(counter, LOAD(counter) + 1);
        STORE(wants[me], 0);
    }
    return NULL;
}
static void *dekker(void *self) {
    int me = (int)(long)self;
    for (int n = 0; n < rounds; n++) {
        STORE(wants[me], 1);
        FENCE();
        while (LOAD(wants[!me])) {
            if (LOAD(turn) == (uint64_t)me) { sched_yield(); continue; }
            STORE(wants[me], 0);
            while (LOAD(turn) != (uint64_t)me) sched_yield();
            STORE(wants[me], 1);
            FENCE();
        }
        STORE(counter, LOAD(counter) + 1);
        STORE(turn, (uint64_t)!me), STORE(wants[me], 0);
    }
    return NULL;
}

// A flag on a thread's own stack that another one sets.
static void *set_flag(void *flag) {
    sched_yield();
    STORE(*(uint64_t *)flag, 1);
    return NULL;
}
static void flags(void) {
    for (int n = 0; n < rounds / 50; n++) {
        uint64_t flag = 0;
        pthread_t thread;
        pthread_create(&thread, NULL, set_flag, &flag);
        while (!LOAD(flag)) COMPILER_BARRIER();
        pthread_join(thread, NULL);
    }
    printf("flags on the stack\n");
}

static void together(void *(*a)(void *), void *(*b)(void *)) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, a, (void *)0), pthread_create(&threads[1], NULL, b, (void *)1);
    pthread_join(threads[0], NULL), pthread_join(threads[1], NULL);
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? atoi(argv[1]) : 10000;
    for (size_t n = 0; n < sizeof tests / sizeof *tests; n++) run(&tests[n]);
    together(lock_writer, lock_reader);
    printf("sequence lock: %ld torn\n", torn);
    together(producer, consumer);
    printf("ring: %ld misplaced\n", misplaced);
    pool = calloc(2 * rounds + 1, sizeof *pool), first = last = pool;
    together(queue_user, queue_user);
    for (uint64_t value; take(&value); taken++) sum += value;
    printf("queue: %ld lost, sum %ld\n", (long)(2 * rounds - taken), (long)sum);
    counter = 0, together(peterson, peterson);
    printf("Peterson: %ld lost\n", (long)(2 * rounds - counter));
    counter = wants[0] = wants[1] = turn = 0, together(dekker, dekker);
    printf("Dekker: %ld lost\n", (long)(2 * rounds - counter));
    flags();
    return 0;
}
