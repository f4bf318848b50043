// Memory that changes from step to step, all of it known.
#include "round.h"
#include <sys/mman.h>

#ifndef MEGABYTES
#define MEGABYTES 64
#endif
enum { PAGES = MEGABYTES * 256, WORDS = 512, STRIDE = 257 };

static long (*memory)[WORDS], changed[PAGES];

static void prepare(void) {
    memory = mmap(0, PAGES * sizeof *memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (long page = 0; page < PAGES; page++)
        for (long word = 0; word < WORDS; word++)
            memory[page][word] = page * WORDS + word;
}

static void check(long step) {
    for (long page = step % STRIDE; page < PAGES; page += STRIDE) {
        long word = page % WORDS, beside = (page + step) % WORDS;
        CHECK(memory[page][word] == page * WORDS + word + changed[page]);
        CHECK(beside == word || memory[page][beside] == page * WORDS + beside);
        memory[page][word]++;
        changed[page]++;
    }
}
