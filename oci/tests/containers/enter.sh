# enter.sh ROOT WORK INSTALLED: a node's view of this machine, for as long as standard input is open. WORK is /tmp there,
# INSTALLED is /opt/tranship.
set -e
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mkdir -p dev opt/tranship proc run sys tmp
mount --bind "$2" tmp
mount --bind "$3" opt/tranship
mount --rbind /dev dev
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount -t tmpfs run run
mkdir run/criu
pivot_root . .
umount -l .
cd /
echo ready
while read -r _; do :; done
