// Files whose names are gone: one that is read, one that is mapped and appended to, one with another name, a directory.
#include "round.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int file, journal, linked, directory;
static char *mapped;

static int made(const char *path, int flags) {
    int fd = open(path, O_RDWR | O_CREAT | flags, 0640);
    CHECK(fd >= 0);
    return fd;
}

static void prepare(void) {
    file = made("/tmp/file", 0);
    CHECK(write(file, "0123456789", 10) == 10 && lseek(file, 3, SEEK_SET) == 3);
    journal = made("/tmp/journal", O_APPEND);
    CHECK((mapped = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, journal, 0)) != MAP_FAILED);
    linked = made("/tmp/linked", 0);
    CHECK(write(linked, "both", 4) == 4 && link("/tmp/linked", "/tmp/other") == 0);
    CHECK(unlink("/tmp/file") == 0 && unlink("/tmp/journal") == 0 && unlink("/tmp/linked") == 0);
    CHECK(mkdir("/tmp/gone", 0700) == 0 && (directory = open("/tmp/gone", O_DIRECTORY)) >= 0);
    CHECK(rmdir("/tmp/gone") == 0);
}

static void check(long step) {
    char byte, word[4];
    struct stat about;
    CHECK(lseek(file, 0, SEEK_CUR) == (step + 3) % 10);
    CHECK(read(file, &byte, 1) == 1 && byte == '0' + (step + 3) % 10);
    if (byte == '9')
        CHECK(lseek(file, 0, SEEK_SET) == 0);
    CHECK(fstat(file, &about) == 0 && about.st_nlink == 0 && about.st_size == 10);
    byte = step;
    CHECK(write(journal, &byte, 1) == 1);
    CHECK(fstat(journal, &about) == 0 && about.st_size == step + 1 && about.st_mode == (S_IFREG | 0640));
    for (long before = 0; before <= step; before++)
        CHECK(mapped[before] == (char)before);
    int other = open("/tmp/other", O_RDWR);
    byte = step;
    CHECK(other >= 0 && pwrite(other, &byte, 1, 0) == 1 && close(other) == 0);
    CHECK(pread(linked, word, 4, 0) == 4 && word[0] == byte && memcmp(word + 1, "oth", 3) == 0);
    CHECK(access("/tmp/linked", F_OK) == -1 && access("/tmp/file", F_OK) == -1);
    CHECK(fstat(directory, &about) == 0 && S_ISDIR(about.st_mode) && about.st_nlink == 0);
}
