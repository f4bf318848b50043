// Descriptors: numbers far apart, places that several share, flags, owners, and how far a directory has been read.
#include "round.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#define FILES 20

static int file, same, other, asks[2], answers[2];
static DIR *directory;

static void prepare(void) {
    CHECK((file = open("/tmp/file", O_RDWR | O_CREAT | O_NONBLOCK, 0600)) >= 0);
    CHECK(dup2(file, 700) == 700);
    CHECK((same = fcntl(file, F_DUPFD_CLOEXEC, 300)) == 300);
    CHECK((other = open("/tmp/file", O_RDWR | O_APPEND | O_CLOEXEC)) >= 0);
    CHECK(pipe(asks) == 0 && pipe(answers) == 0);
    CHECK(fcntl(asks[0], F_SETOWN, getpid()) == 0 && fcntl(asks[0], F_SETSIG, SIGUSR1) == 0);
    CHECK(mkdir("/tmp/many", 0700) == 0);
    for (int i = 0; i < FILES; i++) {
        char path[32];
        sprintf(path, "/tmp/many/%d", i);
        int made = creat(path, 0600);
        CHECK(made >= 0 && close(made) == 0);
    }
    CHECK((directory = opendir("/tmp/many")));
    // A child moves the place that it shares.
    if (fork() == 0)
        for (char byte;;) {
            CHECK(read(asks[0], &byte, 1) == 1);
            CHECK(write(700, &byte, 1) == 1 && write(answers[1], &byte, 1) == 1);
        }
}

static void check(long step) {
    char byte = step, got;
    CHECK(lseek(file, 0, SEEK_CUR) == step && lseek(same, 0, SEEK_CUR) == step);
    CHECK(write(asks[1], &byte, 1) == 1 && read(answers[0], &got, 1) == 1 && got == byte);
    CHECK(lseek(file, 0, SEEK_CUR) == step + 1 && lseek(other, 0, SEEK_CUR) == 0);
    CHECK(pread(other, &got, 1, step) == 1 && got == byte);
    CHECK((fcntl(file, F_GETFL) & (O_NONBLOCK | O_APPEND)) == O_NONBLOCK && fcntl(700, F_GETFD) == 0);
    CHECK((fcntl(other, F_GETFL) & (O_NONBLOCK | O_APPEND)) == O_APPEND && fcntl(same, F_GETFD) == FD_CLOEXEC);
    CHECK(fcntl(asks[0], F_GETOWN) == getpid() && fcntl(asks[0], F_GETSIG) == SIGUSR1);
    // An entry at a step, each once.
    static int seen;
    if (step % (FILES + 2) == 0)
        rewinddir(directory), seen = 0;
    struct dirent *entry = readdir(directory);
    CHECK(entry);
    if (entry->d_name[0] != '.') {
        CHECK(!(seen & 1 << atoi(entry->d_name)));
        seen |= 1 << atoi(entry->d_name);
    }
    CHECK(step % (FILES + 2) != FILES + 1 || seen == (1 << FILES) - 1);
}
