// A control group: the container runs into its limit of processes, at the same one at each place.
#include "round.h"
#include <signal.h>
#include <sys/wait.h>

// With this one as many as the harness allows.
#define MORE 19

// How many more there may be.
static int fill(void) {
    pid_t children[MORE + 1];
    int count = 0;
    while (count <= MORE && (children[count] = fork()) >= 0)
        if (children[count++] == 0)
            for (;;)
                pause();
    CHECK(count > MORE || errno == EAGAIN);
    for (int i = 0; i < count; i++) {
        CHECK(kill(children[i], SIGKILL) == 0);
        CHECK(waitpid(children[i], 0, 0) == children[i]);
    }
    return count;
}

static void prepare(void) {}

static void check(long step) {
    // CRIU needs room, too, for processes of its own: it finds the group full nowhere, and leaves it some steps later.
    static int is_seen;
    if (is_fresh)
        is_seen = 0;
    if (is_seen)
        return;
    int count = fill();
    CHECK(count <= MORE);
    is_seen = count == MORE;
}
