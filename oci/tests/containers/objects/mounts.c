// Directories of the host, one of them read-only, and a volume in memory: files that are open there, and new ones.
#include "round.h"
#include <fcntl.h>
#include <sys/statvfs.h>

static int given, kept, volatile_file;

static int opened(const char *path, int flags) {
    int fd = open(path, flags, 0600);
    CHECK(fd >= 0);
    return fd;
}

static void prepare(void) {
    given = opened("/mnt/given/file", O_RDONLY);
    kept = opened("/mnt/kept/file", O_RDWR | O_CREAT | O_EXCL | O_APPEND);
    volatile_file = opened("/mnt/volume/file", O_RDWR | O_CREAT | O_EXCL);
    int other = opened("/mnt/volume/other", O_WRONLY | O_CREAT);
    CHECK(write(other, "other", 5) == 5 && close(other) == 0);
}

static void check(long step) {
    char byte = step, word[8];
    CHECK(pread(given, word, 8, 0) == 5 && memcmp(word, "given", 5) == 0);
    CHECK(write(kept, &byte, 1) == 1 && lseek(kept, 0, SEEK_END) == step + 1);
    CHECK(write(volatile_file, &byte, 1) == 1 && lseek(volatile_file, 0, SEEK_CUR) == step + 1);
    CHECK(step == 0 || (pread(kept, word, 1, step - 1) == 1 && word[0] == (char)(step - 1)));
    CHECK(step == 0 || (pread(volatile_file, word, 1, step - 1) == 1 && word[0] == (char)(step - 1)));
    CHECK(open("/mnt/given/new", O_WRONLY | O_CREAT, 0600) == -1 && errno == EROFS);
    struct statvfs about;
    CHECK(statvfs("/mnt/given", &about) == 0 && about.f_flag & ST_RDONLY);
    CHECK(statvfs("/mnt/volume", &about) == 0 && about.f_flag & ST_NOEXEC && !(about.f_flag & ST_RDONLY));
    CHECK(about.f_blocks * about.f_frsize == 1 << 20);
    int other = opened("/mnt/volume/other", O_RDONLY);
    CHECK(read(other, word, 8) == 5 && memcmp(word, "other", 5) == 0 && close(other) == 0);
}
