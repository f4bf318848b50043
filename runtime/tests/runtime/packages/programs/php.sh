$RUN /usr/bin/php -r '
echo json_encode(array_map(fn($x) => $x * 2, [1, 2, 3])), PHP_EOL, md5("a"), PHP_EOL, PHP_OS, " ", php_uname("m"), PHP_EOL;
preg_match("/(\w+)@(\w+)/", "me@here", $m); print_r($m); echo intdiv(7, 2), " ", 2 ** 0.5, PHP_EOL, shell_exec("echo child");'
