// A pipe and a fifo with bytes in them, and a large pipe that is almost full: how bytes share its pages a restore may change.
// (CRIU dumps no pipe of packets, O_DIRECT.)
#include "round.h"
#include <fcntl.h>
#include <sys/stat.h>

static int bytes[2], full[2], fifo, size, held;

static void prepare(void) {
    CHECK(pipe(bytes) == 0 && write(bytes[1], "abc", 3) == 3);
    CHECK(mkfifo("/tmp/fifo", 0600) == 0 && (fifo = open("/tmp/fifo", O_RDWR)) >= 0);
    CHECK(write(fifo, "xyz", 3) == 3);
    CHECK(pipe2(full, O_NONBLOCK) == 0 && (size = fcntl(full[1], F_SETPIPE_SZ, 1 << 17)) >= 1 << 17);
    held = (size - 8 * 4096) / 4;
    for (int i = 0; i < held; i++)
        CHECK(write(full[1], &i, 4) == 4);
}

static void check(long step) {
    char got[1];
    CHECK(read(bytes[0], got, 1) == 1 && got[0] == 'a' + step % 3);
    CHECK(write(bytes[1], got, 1) == 1);
    CHECK(read(fifo, got, 1) == 1 && got[0] == 'x' + step % 3);
    int writer = open("/tmp/fifo", O_WRONLY | O_NONBLOCK);
    CHECK(writer >= 0 && write(writer, got, 1) == 1 && close(writer) == 0);
    int value;
    CHECK(fcntl(full[1], F_GETPIPE_SZ) == size);
    for (int i = 0; i < 1024; i++)
        CHECK(read(full[0], &value, 4) == 4 && value == (step * 1024 + i) % held);
    for (int i = 0; i < 1024; i++) {
        value = (step * 1024 + i) % held;
        CHECK(write(full[1], &value, 4) == 4);
    }
}
