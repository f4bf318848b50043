// Locks of files: a whole one's, a part's of a process and a part's of an open file; a child finds them taken.
#include "round.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>

static int whole, parts, open_file;

static struct flock part(int type, long start) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = 10};
}

static void prepare(void) {
    CHECK((whole = open("/tmp/whole", O_RDWR | O_CREAT, 0600)) >= 0 && flock(whole, LOCK_EX) == 0);
    CHECK((parts = open("/tmp/parts", O_RDWR | O_CREAT, 0600)) >= 0);
    struct flock lock = part(F_WRLCK, 10);
    CHECK(fcntl(parts, F_SETLK, &lock) == 0);
    lock = part(F_RDLCK, 30);
    CHECK(fcntl(parts, F_SETLK, &lock) == 0);
    CHECK((open_file = open("/tmp/open", O_RDWR | O_CREAT, 0600)) >= 0);
    lock = part(F_WRLCK, 50);
    CHECK(fcntl(open_file, F_OFD_SETLK, &lock) == 0);
}

static void expect(const char *path, long start, int type, pid_t owner) {
    int fd = open(path, O_RDWR);
    struct flock lock = part(F_WRLCK, start);
    CHECK(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == type);
    if (type != F_UNLCK)
        CHECK(lock.l_pid == owner && lock.l_start == start && lock.l_len == 10);
    CHECK(close(fd) == 0);
}

static void check(long step) {
    pid_t child = fork();
    if (child == 0) {
        int fd = open("/tmp/whole", O_RDWR);
        CHECK(flock(fd, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK);
        expect("/tmp/parts", 10, F_WRLCK, getppid());
        expect("/tmp/parts", 20, F_UNLCK, 0);
        expect("/tmp/parts", 30, F_RDLCK, getppid());
        expect("/tmp/open", 50, F_WRLCK, -1);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    // What is given back can be had again.
    struct flock lock = part(F_UNLCK, 10);
    CHECK(fcntl(parts, F_SETLK, &lock) == 0);
    lock = part(F_WRLCK, 10);
    CHECK(fcntl(parts, F_SETLK, &lock) == 0);
    CHECK(flock(whole, step % 2 ? LOCK_UN : LOCK_EX) == 0 && flock(whole, LOCK_EX) == 0);
}
