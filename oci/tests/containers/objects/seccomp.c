// What the container's seccomp profile forbids, with which error, and what it allows by an argument's value.
#include "round.h"
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static void prepare(void) {}

static void refused(long result, int error) {
    CHECK(result == -1 && errno == error);
}

static void check(long step) {
    refused(chroot("/"), EPERM);
    refused(mkdir("/tmp/refused", 0700), ENOTCONN);
    CHECK(syscall(SYS_umask, 026) != -1);
    refused(syscall(SYS_umask, 022), EPERM);
    refused(socket(AF_INET, SOCK_STREAM, 0), EXDEV);
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    refused(lseek(pair[0], 1000, SEEK_SET), ENODEV);
    refused(lseek(pair[0], 999, SEEK_SET), ESPIPE);
    refused(lseek(pair[0], -1, SEEK_SET), ENODEV);
    refused(lseek(pair[0], 0, SEEK_END), ENOTTY);
    refused(lseek(pair[0], 0, SEEK_CUR), ESPIPE);
    close(pair[0]);
    close(pair[1]);
}
