$RUN /usr/bin/lua5.4 -e '
local t = {} for i = 1, 1000 do t[i] = i * i end
print(#t, t[1000], math.sin(1), string.format("%g %q", 1e100, "a\nb"), 7 // 2, 1 << 62)
local c = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
print(c(), c(), c(), select(2, pcall(error, { code = 1 })).code)
print(io.popen("echo sub"):read("a"), os.execute("exit 5"))'
