// Memory: pages of every protection, locked ones, code that was written, a file's private copy, and a growing heap.
#include "round.h"
#include <fcntl.h>
#include <sys/mman.h>

#define ANONYMOUS MAP_PRIVATE | MAP_ANONYMOUS, -1, 0

static char *none, *readable, *locked, *copy, *heap;
static int (*code)(void);
static int ends[2];

static void *page(void) {
    void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, ANONYMOUS);
    CHECK(page != MAP_FAILED);
    return page;
}

// The kernel says what it may do there.
static int may_read(const char *at) {
    char byte;
    return write(ends[1], at, 1) == 1 && read(ends[0], &byte, 1) == 1;
}

static int may_write(char *at) {
    char byte = *at;
    CHECK(write(ends[1], &byte, 1) == 1);
    return read(ends[0], at, 1) == 1 || (read(ends[0], &byte, 1), 0);
}

static long kilobytes(const char *field) {
    char line[128];
    long value = -1;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, field, strlen(field)) == 0)
            value = atol(line + strlen(field));
    CHECK(fclose(status) == 0);
    return value;
}

static void prepare(void) {
    CHECK(pipe(ends) == 0);
    strcpy(none = page(), "none");
    CHECK(mprotect(none, 4096, PROT_NONE) == 0);
    strcpy(readable = page(), "readable");
    CHECK(mprotect(readable, 4096, PROT_READ) == 0);
    CHECK(mlock(locked = page(), 4096) == 0);
    // mov $42, %eax; ret
    code = memcpy(page(), "\xb8\x2a\0\0\0\xc3", 6);
    CHECK(mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0);
    int fd = open("/tmp/file", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && write(fd, "file", 4) == 4);
    CHECK((copy = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0)) != MAP_FAILED);
    copy[0] = 'm';
    CHECK(pwrite(fd, "F", 1, 3) == 1 && close(fd) == 0);
    heap = sbrk(0);
}

static void check(long step) {
    CHECK(!may_read(none) && errno == EFAULT);
    CHECK(mprotect(none, 4096, PROT_READ) == 0 && strcmp(none, "none") == 0);
    CHECK(mprotect(none, 4096, PROT_NONE) == 0);
    CHECK(may_read(readable) && !may_write(readable) && strcmp(readable, "readable") == 0);
    CHECK(may_read((char *)code) && !may_write((char *)code) && code() == 42);
    CHECK(may_write(locked) && kilobytes("VmLck:") == 4);
    CHECK(memcmp(copy, "mile", 4) == 0);
    CHECK(sbrk(0) == heap + step * 4096 && sbrk(4096) == heap + step * 4096);
    heap[step * 4096] = step;
    for (long before = 0; before <= step; before++)
        CHECK(heap[before * 4096] == before && heap[before * 4096 + 1] == 0);
}
