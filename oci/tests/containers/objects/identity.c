// Who a process is and what it may do: its users, groups, capabilities, limits, directory and how it is scheduled.
#include "round.h"
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

struct identity {
    uid_t users[4];
    gid_t groups[4], supplementary[8];
    struct __user_cap_data_struct capabilities[2];
    unsigned bounding[2], ambient[2];
    struct rlimit limits[RLIM_NLIMITS];
    int secure, no_new_privileges, dumpable, reaps, death, nice, scheduler, count;
    mode_t mask;
    char name[16], directory[32];
};
static struct identity before;

static struct identity take(void) {
    struct identity now = {};
    CHECK(getresuid(&now.users[0], &now.users[1], &now.users[2]) == 0);
    CHECK(getresgid(&now.groups[0], &now.groups[1], &now.groups[2]) == 0);
    now.users[3] = setfsuid(-1), now.groups[3] = setfsgid(-1);
    CHECK((now.count = getgroups(8, now.supplementary)) >= 0);
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    CHECK(syscall(SYS_capget, &header, now.capabilities) == 0);
    for (int i = 0; i <= CAP_LAST_CAP; i++) {
        now.bounding[i / 32] |= prctl(PR_CAPBSET_READ, i) << i % 32;
        now.ambient[i / 32] |= prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0) << i % 32;
    }
    for (int i = 0; i < RLIM_NLIMITS; i++)
        CHECK(getrlimit(i, &now.limits[i]) == 0);
    now.secure = prctl(PR_GET_SECUREBITS);
    now.no_new_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    now.dumpable = prctl(PR_GET_DUMPABLE);
    CHECK(prctl(PR_GET_CHILD_SUBREAPER, &now.reaps) == 0 && prctl(PR_GET_PDEATHSIG, &now.death) == 0);
    CHECK(prctl(PR_GET_NAME, now.name) == 0 && getcwd(now.directory, sizeof now.directory));
    now.nice = getpriority(PRIO_PROCESS, 0);
    now.scheduler = sched_getscheduler(0);
    umask(now.mask = umask(0));
    return now;
}

static void prepare(void) {
    CHECK(mkdir("/tmp/here", 0711) == 0 && chdir("/tmp/here") == 0);
    CHECK(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_NOROOT_LOCKED | SECBIT_NOROOT) == 0);
    CHECK(prctl(PR_CAPBSET_DROP, CAP_FOWNER) == 0);
    CHECK(setgroups(3, (gid_t[]){70, 80, 90}) == 0);
    // A whole change of users CRIU can dump only if it may have the limits of all.
    setfsgid(5), setfsuid(2);
    CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){100, 200}) == 0);
    CHECK(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 1 << 20}) == 0);
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && prctl(PR_SET_PDEATHSIG, 12) == 0);
    CHECK(prctl(PR_SET_NAME, "somebody") == 0);
    CHECK(setpriority(PRIO_PROCESS, 0, 17) == 0);
    CHECK(sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){}) == 0);
    umask(0027);
    before = take();
    CHECK(before.users[3] == 2 && before.count == 3 && before.mask == 0027 && before.nice == 17);
    CHECK(before.capabilities[0].effective & 1 << CAP_CHOWN && before.no_new_privileges);
}

static void check(long step) {
    struct identity now = take();
    const char *was = (const char *)&before, *is = (const char *)&now;
    for (size_t i = 0; i < sizeof now; i++)
        if (was[i] != is[i]) {
            errno = i;
            printf("at %ld: %d %d\n", (long)i, was[i], is[i]);
            CHECK(!"changed");
        }
    // It may still change an owner, and makes files as who it is.
    int fd = open("/tmp/made", O_CREAT | O_EXCL | O_WRONLY, 0666);
    struct stat about;
    CHECK(fd >= 0 && fstat(fd, &about) == 0 && about.st_uid == 2 && about.st_gid == 5);
    CHECK((about.st_mode & 0777) == 0640 && fchown(fd, 9, 9) == 0);
    CHECK(close(fd) == 0 && unlink("/tmp/made") == 0);
}
