// A terminal with settings of its own and bytes under way in both directions, and a session that it controls.
#include "round.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>

static int master, slave, raw, raw_slave;
static volatile long *interrupts;

static void count(int signal) {
    ++*interrupts;
}

static int terminal(int *slave) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    CHECK((*slave = open(ptsname(master), O_RDWR | O_NOCTTY)) >= 0);
    return master;
}

static void prepare(void) {
    interrupts = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(interrupts != MAP_FAILED);
    master = terminal(&slave);
    raw = terminal(&raw_slave);
    struct termios settings;
    CHECK(tcgetattr(raw_slave, &settings) == 0);
    cfmakeraw(&settings);
    settings.c_cc[VSTART] = 7;
    CHECK(tcsetattr(raw_slave, TCSANOW, &settings) == 0);
    struct winsize size = {24, 81, 0, 0};
    CHECK(ioctl(master, TIOCSWINSZ, &size) == 0);
    CHECK(write(raw, "abc", 3) == 3 && write(raw_slave, "xyz", 3) == 3);
    volatile long *is_ready = interrupts + 1;
    if (fork() == 0) {
        CHECK(setsid() > 0 && ioctl(slave, TIOCSCTTY, 0) == 0);
        CHECK(signal(SIGINT, count) != SIG_ERR);
        *is_ready = 1;
        for (;;)
            pause();
    }
    while (!*is_ready)
        usleep(1000);
}

static void check(long step) {
    char byte;
    CHECK(read(raw_slave, &byte, 1) == 1 && byte == 'a' + step % 3 && write(raw, &byte, 1) == 1);
    CHECK(read(raw, &byte, 1) == 1 && byte == 'x' + step % 3 && write(raw_slave, &byte, 1) == 1);
    struct termios settings;
    CHECK(tcgetattr(raw_slave, &settings) == 0);
    CHECK(!(settings.c_lflag & (ICANON | ECHO)) && settings.c_cc[VSTART] == 7);
    CHECK(tcgetattr(slave, &settings) == 0 && settings.c_lflag & ICANON && settings.c_lflag & ISIG);
    struct winsize size;
    CHECK(ioctl(slave, TIOCGWINSZ, &size) == 0 && size.ws_row == 24 && size.ws_col == 81);
    CHECK(*interrupts == step && write(master, "\3", 1) == 1);
    while (*interrupts == step)
        usleep(500);
}
