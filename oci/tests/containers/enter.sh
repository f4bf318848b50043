# enter.sh ROOT WORK INSTALLED: a node's view of this machine, for as long as standard input is open. WORK is /tmp there,
# INSTALLED is /opt/tranship, and /run/netns/box is what engines make for a container: a network, with a loopback here.
# ROOT is not written to.
set -e
mount --make-rprivate /
mkdir -p "$2/.node"
mount -t tmpfs node "$2/.node"
cd "$2/.node"
mkdir upper scratch root
mount -t overlay -o "lowerdir=$1,upperdir=upper,workdir=scratch" overlay root
cd root
mkdir -p dev opt/tranship proc run sys tmp var/lib/containers
mount --bind "$2" tmp
mount --bind "$3" opt/tranship
mount --rbind /dev dev
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount -t tmpfs run run
# No layers on layers: what engines keep is elsewhere.
mount -t tmpfs containers var/lib/containers
mkdir -p run/criu etc/criu
# There is no iptables.
echo 'network-lock nftables' >etc/criu/runc.conf
ip link set lo up
pivot_root . .
umount -l .
cd /
ip netns add box
ip -n box link set lo up
exec 3<&0
while read -r _; do :; done <&3 &
echo ready
# Meanwhile it takes in what others leave behind: CRIU's processes would count in a container's control group.
wait $!
