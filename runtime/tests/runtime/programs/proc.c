// What a program finds in /proc about itself, in all the ways to name it. Prints the same natively and translated. An
// argument leaves out what emulators of a user's side of Linux make up themselves.
#define _GNU_SOURCE
#include <cpuid.h>
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char text[1 << 20];
static int written = 7;
static char large[1 << 16];

static const char *load(int fd) {
    size_t used = 0;
    ssize_t got;
    while ((got = read(fd, text + used, 1000)) > 0) used += got;
    text[used] = 0;
    close(fd);
    return got < 0 ? NULL : text;
}

// Rights of the mapping that `address` lies in, and its name.
static const char *mapping(const char *maps, const void *address) {
    static char answer[600];
    for (const char *line = maps; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        unsigned long start, end, offset, inode;
        char rights[5], device[20], name[500] = "";
        char copy[700] = "";
        memcpy(copy, line, strcspn(line, "\n") < 699 ? strcspn(line, "\n") : 699);
        if (sscanf(copy, "%lx-%lx %4s %lx %19s %lu %499[^\n]", &start, &end, rights, &offset, device, &inode, name) < 6) continue;
        if ((uintptr_t)address < start || (uintptr_t)address >= end) continue;
        const char *base = strrchr(name, '/');
        snprintf(answer, sizeof answer, "%s %s inode %d offset %d", rights, base ? base + 1 : name, inode != 0, offset != 0);
        return answer;
    }
    return "nowhere";
}

static int strange(const char *maps) {
    int count = 0;
    for (const char *line = maps; *line; line = strchr(line, '\n') + 1) {
        unsigned long start = strtoul(line, NULL, 16);
        char rights[5];
        sscanf(line, "%*s %4s", rights);
        // An x86-64 program has at most 47 bits of addresses, but for the kernel's page at the very end.
        count += (start >> 47 != 0 && start >> 60 != 15) || strstr(line, "tranship") == line;
    }
    return count;
}

static void maps(void) {
    void *code = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect((char *)code + 4096, 4096, PROT_READ | PROT_EXEC);
    void *none = mmap(NULL, 4096, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *heap = sbrk(4096);
    char own[60], task[80];
    snprintf(own, sizeof own, "/proc/%d/maps", getpid());
    snprintf(task, sizeof task, "/proc/self/task/%d/maps", (int)syscall(SYS_gettid));
    const char *names[] = {"/proc/self/maps", "/proc/thread-self/maps", own, task, "/proc/../proc/self/maps", "//proc//self//maps"};
    for (size_t n = 0; n < sizeof names / sizeof *names + 2; n++) {
        int directory = n == 6 ? open("/proc/self", O_RDONLY) : n == 7 ? open("/proc", O_PATH) : AT_FDCWD;
        const char *name = n == 6 ? "maps" : n == 7 ? "self/maps" : names[n];
        const char *found = load(openat(directory, name, O_RDONLY | O_CLOEXEC));
        printf("%d: strange %d\n", (int)n, strange(found));
        printf("  code %s\n", mapping(found, (void *)(uintptr_t)maps));
        printf("  data %s\n", mapping(found, &written));
        printf("  constant %s\n", mapping(found, "constant"));
        printf("  stack %s\n", mapping(found, &directory));
        printf("  heap %s\n", mapping(found, heap));
        printf("  made %s\n", mapping(found, code));
        printf("  executable %s\n", mapping(found, (char *)code + 4096));
        printf("  none %s\n", mapping(found, none));
        printf("  lowest %s\n", mapping(found, (void *)4096));
    }
    int fd = open("/proc/self/maps", O_RDWR);
    printf("to write %d", fd);
    fd = open("/proc/self/maps", O_RDONLY);
    printf(" flags %d %d", fcntl(fd, F_GETFL) & O_ACCMODE, fcntl(fd, F_GETFD));
    printf(" writes %d", (int)write(fd, "x", 1));
    printf(" seeks %d\n", (int)lseek(fd, 0, SEEK_SET));
    const char *found = load(open("/proc/self/smaps", O_RDONLY));
    printf("smaps: strange %d, code %s", strange(found), mapping(found, (void *)(uintptr_t)maps));
    printf(", sizes %d\n", strstr(found, "\nRss:") != NULL && strstr(found, "\nVmFlags:") != NULL);
    char line[200];
    snprintf(line, sizeof line, "\n%08lx-", (unsigned long)code);
    printf("lines as the kernel writes them: %d\n", strstr(found, line) != NULL);
    FILE *stream = fopen("/proc/self/maps", "r");
    int lines = 0, bad = 0;
    while (fgets(line, sizeof line, stream)) lines++, bad += strlen(line) > 73 && line[72] != ' ';
    printf("columns %d %d\n", lines > 5, bad);
}

static void program(const char *own) {
    char link[300], path[100], real[300];
    struct stat by_link, by_name, itself;
    const char *name = strrchr(own, '/') + 1;
    stat(own, &by_name);
    snprintf(path, sizeof path, "/proc/%d/exe", getpid());
    const char *paths[] = {"/proc/self/exe", path, "/proc/thread-self/exe", "/proc/self/../self/exe"};
    for (int n = 0; n < 4; n++) {
        ssize_t length = readlink(paths[n], link, sizeof link - 1);
        link[length > 0 ? length : 0] = 0;
        printf("exe %s", strrchr(link, '/') && !strcmp(strrchr(link, '/') + 1, name) ? "named" : link);
        printf(" %d", stat(paths[n], &by_link) == 0 && by_link.st_ino == by_name.st_ino);
        printf(" %d", lstat(paths[n], &itself) == 0 && S_ISLNK(itself.st_mode));
        unsigned char magic[20] = "";
        int fd = open(paths[n], O_RDONLY);
        printf(" %zd %d", read(fd, magic, 20), magic[18] == EM_X86_64);
        printf(" %d\n", realpath(paths[n], real) && !strcmp(strrchr(real, '/') + 1, name));
        close(fd);
    }
    int directory = open("/proc/self", O_RDONLY | O_DIRECTORY);
    printf("below %zd", readlinkat(directory, "exe", link, 3));
    struct statx extended;
    printf(" %d\n", statx(directory, "exe", 0, STATX_INO, &extended) == 0 && extended.stx_ino == by_name.st_ino);
}

static void machine(void) {
    const char *found = load(open("/proc/cpuinfo", O_RDONLY));
    unsigned a, b, c, d;
    __cpuid(1, a, b, c, d);
    const char *flags = strstr(found, "\nflags");
    char *end = strchr(flags + 1, '\n');
    int processors = 0;
    for (const char *at = found; (at = strstr(at, "processor\t: ")); at++) processors++;
    printf("processors %d", processors == sysconf(_SC_NPROCESSORS_ONLN));
    *end = ' ', end[1] = 0;
    printf(" sse2 %d ssse3 %d avx %d", strstr(flags, " sse2 ") != NULL, !(c >> 9 & 1) == !strstr(flags, " ssse3 "), !(c >> 28 & 1) == !strstr(flags, " avx "));
    __cpuid_count(7, 0, a, b, c, d);
    printf(" bmi2 %d avx2 %d\n", !(b >> 8 & 1) == !strstr(flags, " bmi2 "), !(b >> 5 & 1) == !strstr(flags, " avx2 "));
    found = load(open("/proc/cpuinfo", O_RDONLY));
    // The names, up to the first processor's end; what only some have is left out.
    for (const char *line = found; *line != '\n'; line = strchr(line, '\n') + 1) {
        int length = strcspn(line, "\t:");
        if (strncmp(line, "vmx flags", 9) && strncmp(line, "TLB size", 8)) printf("%.*s,", length, line);
    }
    printf("\n");
}

static void others(int argc, char **argv, char **environment) {
    const char *found = load(open("/proc/self/auxv", O_RDONLY));
    const Elf64_auxv_t *vector = (const void *)found;
    uint64_t entry = 0, headers = 0;
    for (; vector->a_type; vector++) {
        if (vector->a_type == AT_ENTRY) entry = vector->a_un.a_val;
        if (vector->a_type == AT_PHNUM) headers = vector->a_un.a_val;
    }
    printf("auxv %d %d", entry == getauxval(AT_ENTRY), headers == getauxval(AT_PHNUM));
    found = load(open("/proc/self/cmdline", O_RDONLY));
    printf(" cmdline %d", strcmp(found, argv[0]) == 0 && (argc < 2 || strcmp(found + strlen(found) + 1, argv[1]) == 0));
    found = load(open("/proc/self/environ", O_RDONLY));
    printf(" environ %d", environment[0] == NULL || strcmp(found, environment[0]) == 0);
    found = load(open("/proc/self/comm", O_RDONLY));
    printf(" comm %d", strncmp(found, strrchr(argv[0], '/') + 1, 4) == 0);
    found = load(open("/proc/self/stat", O_RDONLY));
    printf(" stat %d", atoi(found) == getpid());
    found = load(open("/proc/self/status", O_RDONLY));
    printf(" threads %s", strstr(found, "Threads:\t1\n") ? "1" : "?");
    int fd = open("/proc/self/mem", O_RDWR);
    int value = 9;
    printf(" mem %zd", pwrite(fd, &value, 4, (uintptr_t)&written));
    printf(" %d\n", written);
}

int main(int argc, char **argv, char **environment) {
    setvbuf(stdout, NULL, _IONBF, 0);
    memset(large, 1, sizeof large);
    maps(), program(argv[0]), machine();
    if (argc == 1) others(argc, argv, environment);
    return 0;
}
