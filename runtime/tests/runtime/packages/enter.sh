#!/bin/bash
# enter.sh ROOT DIST HOST SCRIPT: runs SCRIPT with the programs of ROOT in namespaces of its own, alone with a loopback
# network. $RUN is there what a program is started with on HOST: nothing if that is `native`, or the runtime. Where that
# is for another machine, the kernel finds its emulator.
set -euo pipefail

# With namespaces; root of these from its next exec on, when it has got its numbers.
if [ "$1" != inside ]; then
    setpriv --pdeathsig KILL unshare --user --mount --net --pid --fork --kill-child \
        bash -c 'until grep -q . /proc/self/gid_map; do sleep 0.01; done; exec "$@"' - "$0" inside "$@" &
    for map in uid_map gid_map; do
        until echo 0 0 65536 >/proc/$!/$map; do sleep 0.01; done 2>/dev/null
    done
    wait $!
    exit
fi
root=$2 dist=$3 host=$4 script=$5

magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'

mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /dev dev
for directory in mnt run tmp var/log; do
    mount -t tmpfs tmpfs $directory
done
mount -o remount,bind,ro .
ip link set lo up
# Programs of the other machine that are executed get their emulator, in these namespaces only.
mount -t binfmt_misc binfmt_misc proc/sys/fs/binfmt_misc
echo ":aarch64:M::$magic:$mask:$(command -v qemu-aarch64-static):OF" >proc/sys/fs/binfmt_misc/register

run=
if [ "$host" != native ]; then
    cp "$dist/runtime-$host" mnt/runtime
    run="/mnt/runtime --"
fi
{ cat "${BASH_SOURCE%/*}/prelude.sh" "$script"; } >mnt/script
mkdir tmp/work
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C RUN="$run" \
    chroot . /bin/bash -c 'cd /tmp/work && . /mnt/script'
