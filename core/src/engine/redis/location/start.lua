-- Starts a snapshot. The same id again is the same start.
-- KEYS: format, sequence, snapshots, nothing; the keys of the entries that may be dropped.
-- ARGV: id; droppable entries.
-- Answer: AGAIN, how many entries must be dropped and the snapshots, NEWER, or DONE, time and the snapshots.
local format, sequence, snapshots, nothing = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id = ARGV[1]
local list = declared(2, 5)

local known = call('GET', format)
if known and known ~= FORMAT then
  return { NEWER }
end
local now = clock()
local last = tonumber(call('GET', sequence) or '0')
if not last then
  -- Foreign data: answered as a foreign type is.
  call('LLEN', sequence)
end
local all = entries(snapshots)

local function done()
  local answer = call('LRANGE', snapshots, 0, -1)
  table.insert(answer, 1, DONE)
  table.insert(answer, 2, now)
  return answer
end

for at = 1, #all do
  if all[at].id == id then
    return done()
  end
end
local must, may = leaving(all, now, 0)
local open = 0
for at = must + 1, #all do
  if all[at].finished == 0 then
    open = open + 1
  end
end
while open >= UNFINISHED or #all - must >= CHAIN do
  must = must + 1
  if all[must].finished == 0 then
    open = open - 1
  end
end
local leave = droppable(all, math.max(must, may), list)
if leave < must then
  return again(snapshots, must)
end

-- Lifts the memory check: a snapshot starts when memory is full, too.
call('DEL', nothing)
drop(snapshots, all, leave, list)
local newest = all[#all]
local base = 0
if newest and leave < #all then
  base = newest.base + newest.bytes
end
call('RPUSH', snapshots,
  packed({ sequence = last, start = now, id = id, base = base, bytes = 0, moved = 0, finished = 0 }))
call('PEXPIREAT', snapshots, text(now + LIFE + MARGIN / 2))
return done()
