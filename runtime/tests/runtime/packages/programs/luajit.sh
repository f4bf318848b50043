$RUN /usr/bin/luajit -e '
local s = 0 for i = 1, 1000000 do s = s + i % 7 end print(s, jit.arch, jit.status())
local t = {} for i = 1, 1000 do t[i] = tostring(i) end print(#table.concat(t))
local ffi = require("ffi"); ffi.cdef("size_t strlen(const char *);"); print(tonumber(ffi.C.strlen("seven..")))'
