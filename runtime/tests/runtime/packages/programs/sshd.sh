# The server puts each connection's first part under a seccomp filter.
mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f host
ssh-keygen -q -t ed25519 -N '' -f user
cat >sshd.conf <<'CONF'
ListenAddress 127.0.0.1:2222
HostKey /tmp/work/host
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
AuthorizedKeysFile /tmp/work/user.pub
CONF
$RUN /usr/sbin/sshd -D -e -f /tmp/work/sshd.conf 2>log &
server=$!
await listening 2222
ssh -p 2222 -i user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \
    root@127.0.0.1 'echo remote; exit 3'
echo "status $?"
kill $server
finish
grep -v 'port\|listening' log
