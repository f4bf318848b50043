// Processes that do nothing but write down how often they have. They are more than there are CPUs.
#include "round.h"
#include <fcntl.h>

enum { WRITERS = 12 };

static void prepare(void) {
    int fd = open("/tmp/counts", O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0);
    for (int writer = 0; writer < WRITERS; writer++) {
        pid_t child = fork();
        CHECK(child >= 0);
        for (long count = 1; child == 0; count++)
            CHECK(pwrite(fd, &count, sizeof count, writer * sizeof count) == sizeof count);
    }
}

static void check(long step) {
    (void)step;
}
