// A netlink socket, which lists what network devices there are.
#include "round.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/socket.h>

static int network;

static void prepare(void) {
    struct sockaddr_nl name = {.nl_family = AF_NETLINK, .nl_pid = 77};
    CHECK((network = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)) >= 0);
    CHECK(bind(network, (void *)&name, sizeof name) == 0);
}

static void check(long step) {
    struct {
        struct nlmsghdr header;
        struct ifinfomsg about;
    } question = {{sizeof question, RTM_GETLINK, NLM_F_REQUEST, step, 0}, {.ifi_index = 1}};
    union {
        struct nlmsghdr header;
        char bytes[8192];
    } answer;
    // CRIU takes no messages along that are under way: there are none where it may come between.
    if (!is_fresh)
        return;
    CHECK(send(network, &question, sizeof question, 0) == sizeof question);
    CHECK(recv(network, &answer, sizeof answer, 0) > 0);
    CHECK(answer.header.nlmsg_type == RTM_NEWLINK && answer.header.nlmsg_seq == step);
    CHECK(answer.header.nlmsg_pid == 77);
    struct ifinfomsg *about = NLMSG_DATA(&answer.header);
    CHECK(about->ifi_type == ARPHRD_LOOPBACK && about->ifi_flags & IFF_UP);
}
