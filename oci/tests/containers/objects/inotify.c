// Watches on a directory and on a file in it, which tell what becomes of them.
#include "round.h"
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

static int notes, directory, file;

static void expect(int watch, unsigned mask, const char *name) {
    union {
        struct inotify_event event;
        char bytes[sizeof(struct inotify_event) + 256];
    } got;
    // Less than two do not fit: the size of a name is that of the longest.
    long size = read(notes, &got, sizeof got.event + (name ? 16 : 0));
    CHECK(size >= (long)sizeof got.event);
    CHECK(got.event.wd == watch && got.event.mask == mask);
    CHECK(name ? strcmp(got.event.name, name) == 0 : got.event.len == 0);
}

static void prepare(void) {
    CHECK(mkdir("/tmp/watched", 0700) == 0);
    int fd = creat("/tmp/watched/file", 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK((notes = inotify_init1(IN_CLOEXEC)) >= 0);
    CHECK((directory = inotify_add_watch(notes, "/tmp/watched", IN_CREATE | IN_DELETE)) > 0);
    CHECK((file = inotify_add_watch(notes, "/tmp/watched/file", IN_CLOSE_WRITE)) > 0);
}

static void check(long step) {
    // CRIU loses what has not been read: nothing happens where it may come between.
    if (!is_fresh)
        return;
    int fd = creat("/tmp/watched/new", 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    expect(directory, IN_CREATE, "new");
    CHECK(unlink("/tmp/watched/new") == 0);
    expect(directory, IN_DELETE, "new");
    CHECK((fd = open("/tmp/watched/file", O_WRONLY)) >= 0 && close(fd) == 0);
    expect(file, IN_CLOSE_WRITE, 0);
    CHECK(inotify_add_watch(notes, "/tmp/watched/file", IN_CLOSE_WRITE) == file);
}
