$RUN /usr/bin/memcached -u root -l 127.0.0.1 -t 4 &
server=$!
await listening 11211
for n in 1 2 3; do
    exec 3<>/dev/tcp/127.0.0.1/11211
    printf 'set a 0 0 5\r\nhello\r\nget a\r\nset n 0 0 1\r\n7\r\nincr n 5\r\ncas a 0 0 1 999\r\nx\r\nquit\r\n' >&3
    cat <&3
done
kill -TERM $server
finish
