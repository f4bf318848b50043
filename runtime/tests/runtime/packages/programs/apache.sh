mkdir files
echo hello >files/index.html
chmod 755 /tmp /tmp/work files
cat >apache.conf <<'CONF'
ServerName here
Listen 127.0.0.1:8090
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
DocumentRoot /tmp/work/files
PidFile /tmp/work/pid
ErrorLog /tmp/work/errors
User www-data
Group www-data
CONF
$RUN /usr/sbin/apache2 -DFOREGROUND -f /tmp/work/apache.conf &
server=$!
await listening 8090
for path in / /none; do
    curl -s -i "http://127.0.0.1:8090$path" | grep -v '^Date\|^Last-M\|^ETag'
done
kill -WINCH $server
finish
