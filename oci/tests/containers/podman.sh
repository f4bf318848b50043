# A container's way by podman's own commands, from home to abroad and back; prints what it has said at the end.
set -e
export PODMAN_IGNORE_CGROUPSV1_WARNING=1
# Engines pass no environment on to their runtime.
cat >/usr/bin/runtime <<'END'
#!/bin/sh
export TRANSHIP_LIB=/opt/tranship
[ ! -e /run/abroad ] || export TRANSHIP_TRANSLATE=always
exec /opt/tranship/tranship-runc-x86_64 "$@"
END
chmod +x /usr/bin/runtime

engine() { podman --cgroup-manager cgroupfs --runtime /usr/bin/runtime "$@"; }
# runs NAME native|translated: that it does; code that is the runtime's, or in memory of no file, is translated code.
runs() {
    local maps=/proc/$(engine inspect -f '{{.State.Pid}}' "$1")/maps how=native
    ! grep -q -e ' r-xp 00000000 00:00 0 *$' -e ' r-xp .*/runtime-' "$maps" || how=translated
    [ $how = "$2" ] || { echo "$1 runs $how" >&2; exit 1; }
}
# steps NAME: wait until the container has said five lines more.
steps() {
    local before=$(engine logs "$1" | wc -l)
    until [ "$(engine logs "$1" | wc -l)" -ge $((before + 5)) ]; do sleep 0.05; done
}
# cross FROM TO native|translated [OPTION…]: have the container go on under another name, where it runs so, from a checkpoint made with
# these options.
cross() {
    engine container checkpoint "${@:4}" --export "/run/$2.tar" "$1" >/dev/null
    engine rm "$1" >/dev/null
    engine container restore --import "/run/$2.tar" --name "$2" >/dev/null
    steps "$2"
    runs "$2" "$3"
}

mkdir -p /run/image/bin
cp /usr/bin/busybox /run/image/bin
for name in cat echo ls sh sleep; do ln -s busybox /run/image/bin/$name; done
tar -C /run/image -c . | podman import --quiet - box >/dev/null

engine run -d --network none --name home box sh -c 'echo >/file; i=0; while sleep 0.02; do echo $i; i=$((i + 1)); done' >/dev/null
steps home
runs home native
touch /run/abroad
cross home abroad translated
[ "$(engine exec abroad echo executed)" = executed ]
engine container checkpoint --leave-running --export /run/unused.tar abroad >/dev/null
steps abroad
rm /run/abroad
[ -n "$(engine exec abroad ls /file)" ]
cross abroad back native --ignore-rootfs
[ -z "$(engine exec back ls /file 2>/dev/null)" ]
engine stop --time 0 back >/dev/null 2>&1
engine logs back
engine rm back >/dev/null
