// A process that makes others and threads all the time: each comes once, and ends as it should. (Not by vfork, and so
// not by posix_spawn: CRIU stops no process that waits for its child in it.)
#include "round.h"
#include <pthread.h>
#include <sys/wait.h>

__attribute__((constructor)) static void play(int count, char **arguments) {
    if (count == 2)
        _exit(atoi(arguments[1]));
}

static void prepare(void) {}

static void expect(pid_t child, int code) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
    // No other one is there.
    CHECK(waitpid(-1, 0, WNOHANG) == -1 && errno == ECHILD);
}

static void *run(void *number) {
    return number;
}

static void check(long step) {
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(i);
        expect(child, i);
        char text[12];
        sprintf(text, "%d", i + 1);
        if ((child = fork()) == 0)
            CHECK(execl("/program", "program", text, NULL) == 0);
        expect(child, i + 1);
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, 0, run, text) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == text);
    }
}
