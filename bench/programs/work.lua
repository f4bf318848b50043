-- What scripts do: calls, tables, strings, closures, floats and integers.

local function fibonacci(n)
  if n < 2 then return n end
  return fibonacci(n - 1) + fibonacci(n - 2)
end

local function sieve(limit)
  local composite, count = {}, 0
  for i = 2, limit do
    if not composite[i] then
      count = count + 1
      for j = i * i, limit, i do composite[j] = true end
    end
  end
  return count
end

local Body = {}
Body.__index = Body

function Body.new(x, v, mass) return setmetatable({ x = x, v = v, mass = mass }, Body) end

function Body:pull(other, dt)
  local d = other.x - self.x
  local force = other.mass * d / (math.abs(d) ^ 3 + 0.01)
  self.v = self.v + force * dt
end

local function planets(steps)
  local bodies = {}
  for i = 1, 6 do bodies[i] = Body.new(i * i, 1 / i, 1 + i % 3) end
  for _ = 1, steps do
    for _, a in ipairs(bodies) do
      for _, b in ipairs(bodies) do if a ~= b then a:pull(b, 0.001) end end
    end
    for _, a in ipairs(bodies) do a.x = a.x + a.v * 0.001 end
  end
  local sum = 0
  for _, a in ipairs(bodies) do sum = sum + a.x * a.mass end
  return sum
end

local function words(count)
  local parts, seen = {}, {}
  for i = 1, count do parts[i] = string.format("w%d", i * 7919 % 1009) end
  for word in table.concat(parts, " "):gmatch("%a%d+") do seen[word] = (seen[word] or 0) + 1 end
  local keys = {}
  for key in pairs(seen) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return a < b end)
  return #keys .. keys[#keys]:upper() .. seen[keys[1]]
end

local function compose(n)
  local f = function(x) return x end
  for i = 1, n do
    local g = f
    f = function(x) return g(x) ~ i end
  end
  return f(0)
end

print("fibonacci", fibonacci(32))
print("sieve", sieve(4000000))
print("planets", string.format("%.12f", planets(80000)))
print("words", words(600000))
local total = 0
for _ = 1, 30000 do total = total + compose(60) end
print("compose", total)
