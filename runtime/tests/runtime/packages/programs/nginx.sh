cat >nginx.conf <<'CONF'
user www-data;
worker_processes 2;
daemon off;
error_log /tmp/work/errors notice;
pid /tmp/work/pid;
events { worker_connections 64; }
http {
    access_log /tmp/work/accesses;
    client_body_temp_path /tmp/work/body;
    proxy_temp_path /tmp/work/proxy;
    fastcgi_temp_path /tmp/work/fastcgi;
    uwsgi_temp_path /tmp/work/uwsgi;
    scgi_temp_path /tmp/work/scgi;
    gzip on;
    gzip_min_length 1;
    server {
        listen 127.0.0.1:8080;
        location / { root /tmp/work/files; }
        location /moved { return 301 /; }
    }
}
CONF
mkdir files
echo hello >files/index.html
seq 20000 >files/numbers
$RUN /usr/sbin/nginx -e stderr -c /tmp/work/nginx.conf &
server=$!
await listening 8080
for path in / /moved /none; do
    curl -s -i "http://127.0.0.1:8080$path" | grep -v '^Date\|^Last-M\|^ETag'
done
curl -s http://127.0.0.1:8080/numbers | cmp - files/numbers
curl -s -r 100-199 http://127.0.0.1:8080/numbers | sha256sum
curl -s --compressed http://127.0.0.1:8080/ -w '%{size_download}\n'
# New workers, of which the log tells; the old ones finish.
kill -HUP $server
await grep -q 'gracefully shutting down' errors
curl -s http://127.0.0.1:8080/
kill -QUIT $server
finish
grep -c . accesses
grep -c 'worker process .* exited with code 0' errors
sed '/\[notice\]/d; s/.*\[/[/; s/[0-9]*#[0-9]*: //' errors
