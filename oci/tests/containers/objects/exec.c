// A child that executes this program again and again, with what is asked as an argument, and one that does so once.
#include "round.h"
#include <fcntl.h>
#include <sys/wait.h>

static int asks[2], answers[2];
static pid_t child;

static void execute(const char *role, long number, char *const environment[]) {
    char text[20];
    sprintf(text, "%ld", number);
    execve("/program", (char *[]){"again", (char *)role, text, 0}, environment);
    CHECK(!"executed");
}

// What it does when it is executed so; descriptors are where the parent has put them.
__attribute__((constructor)) static void play(int count, char **arguments) {
    if (count != 3)
        return;
    long number = atol(arguments[2]), next;
    CHECK(strcmp(getenv("NAME"), "value") == 0 && strcmp(arguments[0], "again") == 0);
    // What was to be closed is.
    CHECK(fcntl(10, F_GETFD) == -1 && errno == EBADF);
    if (strcmp(arguments[1], "once") == 0)
        _exit(number % 100);
    CHECK(write(21, &number, 8) == 8 && read(20, &next, 8) == 8);
    execute("again", next, (char *[]){"NAME=value", 0});
}

static void prepare(void) {
    CHECK(pipe(asks) == 0 && pipe(answers) == 0);
    CHECK(dup3(asks[0], 10, O_CLOEXEC) == 10);
    if ((child = fork()) == 0) {
        CHECK(dup2(asks[0], 20) == 20 && dup2(answers[1], 21) == 21);
        execute("again", 0, (char *[]){"NAME=value", 0});
    }
}

static void check(long step) {
    long answer, next = step + 1;
    CHECK(read(answers[0], &answer, 8) == 8 && answer == step);
    CHECK(write(asks[1], &next, 8) == 8);
    CHECK(waitpid(child, 0, WNOHANG) == 0);
    pid_t other = fork();
    if (other == 0)
        execute("once", step, (char *[]){"NAME=value", 0});
    int status;
    CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == step % 100);
}
