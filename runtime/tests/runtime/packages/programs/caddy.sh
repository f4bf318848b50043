mkdir files
echo hello >files/index.html
seq 2000 >files/numbers
$RUN /usr/bin/caddy file-server --listen 127.0.0.1:8082 --root files 2>log &
server=$!
await listening 8082
curl -s -i http://127.0.0.1:8082/ | grep -v '^Date\|^Last-M\|^Etag'
curl -s http://127.0.0.1:8082/numbers | cmp - files/numbers
curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8082/none
kill -TERM $server
finish
