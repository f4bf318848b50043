#!/bin/busybox sh
# First program of the virtual machine: modules, disk, network; then the node takes over. Kernel parameters, as
# environment, say at which port its agent listens (tranship_port), its address on the local network (tranship_lan) and which
# machine this is (tranship_isa).
b=/bin/busybox
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
for module in /modules/*; do
    $b insmod "$module" || echo "insmod $module failed"
done
for attempt in $($b seq 100); do
    [ -b /dev/vda ] && break
    $b sleep 0.1
done
$b mount -t ext4 -o noatime /dev/vda /root || { echo "no disk"; $b poweroff -f; }
$b ifconfig lo 127.0.0.1 up
$b ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up
$b route add default gw 10.0.2.2
$b mkdir -p /root/opt /root/var/lib/tranship
$b mount -t tmpfs opt /root/opt
$b mv /tranship /root/opt/tranship
$b mv /root/opt/tranship/identity.json /root/var/lib/tranship
for at in dev proc sys; do
    $b mount --move /$at /root/$at
done
$b mount -t cgroup2 cgroup2 /root/sys/fs/cgroup
$b mkdir -p /root/dev/pts /root/dev/shm
$b mount -t devpts devpts /root/dev/pts
for at in dev/shm run tmp; do
    $b mount -t tmpfs tmpfs /root/$at
done
export PATH=/usr/sbin:/usr/bin
# Containers are on a bridge to the lab's local network.
for words in "link add name lan0 type bridge" "link set eth1 master lan0 up" "address add $tranship_lan/24 dev lan0" "link set lan0 up"; do
    $b chroot /root ip $words
done
exec $b switch_root /root "/opt/tranship/node-$tranship_isa" init --listen "0.0.0.0:$tranship_port" --allow-execute
