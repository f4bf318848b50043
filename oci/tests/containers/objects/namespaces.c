// Namespaces: the container's name, its processes' numbers from one on, and a network with an address of its own.
#include "round.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int network;
static pid_t child;

static struct ifreq interface(void) {
    struct ifreq request = {.ifr_name = "lo"};
    struct sockaddr_in *address = (void *)&request.ifr_addr;
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return request;
}

static void prepare(void) {
    CHECK((network = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
    if ((child = fork()) == 0)
        for (;;)
            pause();
}

static void check(long step) {
    char name[64];
    CHECK(gethostname(name, sizeof name) == 0 && strcmp(name, "box") == 0);
    CHECK(getpid() == 1 && getppid() == 0 && kill(child, 0) == 0);
    int processes = 0;
    DIR *proc = opendir("/proc");
    CHECK(proc);
    for (struct dirent *entry; (entry = readdir(proc));)
        processes += atoi(entry->d_name) > 0;
    CHECK(closedir(proc) == 0 && processes == 2);
    CHECK(if_nametoindex("lo") == 1);
    struct ifreq request = interface(), expected = interface();
    CHECK(ioctl(network, SIOCGIFADDR, &request) == 0);
    CHECK(memcmp(&request.ifr_addr, &expected.ifr_addr, 8) == 0);
    CHECK(ioctl(network, SIOCGIFMTU, &request) == 0 && request.ifr_mtu == 65536);
    CHECK(ioctl(network, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_UP);
}
