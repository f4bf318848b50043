cat >haproxy.conf <<'CONF'
global
    nbthread 2
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 5s
frontend front
    bind 127.0.0.1:8081
    use_backend none if { path /none }
    http-request return status 200 content-type text/plain string "hello\n" unless { path /none }
backend none
    server s 127.0.0.1:1
CONF
$RUN /usr/sbin/haproxy -db -f haproxy.conf 2>/dev/null &
server=$!
await listening 8081
curl -s -i http://127.0.0.1:8081/ http://127.0.0.1:8081/other
curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8081/none
kill -USR1 $server
finish
