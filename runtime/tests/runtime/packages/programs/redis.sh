printf '%s\n' 'port 6379' 'save ""' 'appendonly yes' 'io-threads 2' 'enable-debug-command local' >redis.conf
answering() { redis-cli ping | grep -q PONG; }
settled() { redis-cli info persistence | grep -q rdb_bgsave_in_progress:0; }
$RUN /usr/bin/redis-server redis.conf >log &
server=$!
await answering
{
    for n in {1..30}; do echo "set key$n value$n"; echo "incr n"; done
    echo 'lpush l a b c'; echo 'lrange l 0 -1'; echo 'hset h a 1 b 2'; echo 'hgetall h'
    echo 'zadd z 3 c 1 a 2.5 b'; echo 'zrange z 0 -1 withscores'; echo 'incrbyfloat f 0.1'
    echo 'eval "return {redis.call(\"get\", \"n\"), 3.7}" 0'; echo 'bgsave'; echo 'nonsense'; echo 'debug digest'
} | redis-cli
await settled
redis-cli shutdown
finish
$RUN /usr/bin/redis-server redis.conf >log &
server=$!
await answering
redis-cli get key30
$RUN /usr/bin/redis-cli dbsize
kill -TERM $server
finish
