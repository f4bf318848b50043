// Shared memory: of a parent and its child without a name, of a file, of a memory file and of a POSIX object.
#include "round.h"
#include <fcntl.h>
#include <sys/mman.h>

#define SIZE (3 * 4096)
enum { ANONYMOUS, OF_FILE, OF_MEMORY, POSIX, KINDS };

static volatile struct {
    long asked, answer;
    char rest[SIZE - 16];
} *memory[KINDS];
static int fds[KINDS] = {-1};

static void prepare(void) {
    CHECK((fds[OF_FILE] = open("/tmp/file", O_RDWR | O_CREAT, 0600)) >= 0);
    CHECK((fds[OF_MEMORY] = memfd_create("box", MFD_ALLOW_SEALING)) >= 0);
    CHECK((fds[POSIX] = shm_open("/box", O_RDWR | O_CREAT, 0600)) >= 0);
    for (int kind = 0; kind < KINDS; kind++) {
        CHECK(kind == ANONYMOUS || ftruncate(fds[kind], SIZE) == 0);
        int flags = MAP_SHARED | (kind == ANONYMOUS ? MAP_ANONYMOUS : 0);
        void *at = mmap(0, SIZE, PROT_READ | PROT_WRITE, flags, fds[kind], 0);
        CHECK((memory[kind] = at) != MAP_FAILED);
    }
    CHECK(fcntl(fds[OF_MEMORY], F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    CHECK(shm_unlink("/box") == 0);
    if (fork() == 0)
        for (;; usleep(500))
            for (int kind = 0; kind < KINDS; kind++)
                memory[kind]->answer = memory[kind]->asked;
}

static void check(long step) {
    for (int kind = 0; kind < KINDS; kind++) {
        memory[kind]->asked = step + 1;
        memory[kind]->rest[step] = step;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        while (memory[kind]->answer != step + 1)
            usleep(500);
        for (long before = 0; before <= step; before++)
            CHECK(memory[kind]->rest[before] == before);
        // What is in memory is in the file.
        long value;
        CHECK(kind == ANONYMOUS || (pread(fds[kind], &value, 8, 8) == 8 && value == step + 1));
    }
    CHECK(ftruncate(fds[OF_MEMORY], 0) == -1 && errno == EPERM);
    CHECK(fcntl(fds[OF_MEMORY], F_GET_SEALS) == F_SEAL_SHRINK);
}
