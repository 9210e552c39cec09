-- What every changing script of a Location Store begins with.
local call, try = redis.call, redis.pcall
local byte, sub, min = string.byte, string.sub, math.min
local pack, parse = struct.pack, struct.unpack

local FORMAT = '1'
local LIFE, GRACE, MARGIN = 300000, 10000, 60000
local BOUND, LARGE, OVERHEAD = 67108864, 16384, 128
local UNFINISHED, CHAIN = 64, 2048
local ENTRY = '>I8I8c16I8I8I4I8'

-- First words of an answer.
local DONE, AGAIN, NEWER = 1, 2, 3

-- Numbers beyond 1e14 would lose digits otherwise.
local function text(number)
  return string.format('%.0f', number)
end

local function clock()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- What is no entry is answered as a foreign type under our key is: by a command that fits no list.
local function entry(key, raw)
  if #raw ~= 60 then
    call('STRLEN', key)
  end
  local sequence, start, id, base, bytes, moved, finished = parse(ENTRY, raw)
  return { sequence = sequence, start = start, id = id, base = base, bytes = bytes, moved = moved, finished = finished }
end

local function packed(e)
  return pack(ENTRY, e.sequence, e.start, e.id, e.base, e.bytes, e.moved, e.finished)
end

local function entries(key)
  local all = call('LRANGE', key, 0, -1)
  for at = 1, #all do
    all[at] = entry(key, all[at])
  end
  return all
end

-- How many entries must leave at the old end before anything is changed (all, if the clock went back behind the newest
-- start; the overdue ones; those whose bytes are wanted), and how many may (those whose scan is over as well).
local function leaving(all, now, need)
  local count = #all
  if count == 0 then
    return 0, 0
  end
  local newest = all[count]
  if now < newest.start then
    return count, count
  end
  local must, may, open = 0, 0, true
  for at = 1, count do
    local e = all[at]
    if e.start + LIFE <= now or newest.base + newest.bytes - e.base + need > BOUND then
      must = at
    end
    open = open and (must == at or (e.finished > 0 and e.finished + GRACE <= now))
    if open then
      may = at
    end
  end
  return must, math.max(must, may)
end

-- The oldest entries, whose undo keys the caller declared: ARGV from `at` on holds their number, then id and number of keys
-- of each; in KEYS from `key` on, each has its undo hash, its list of moved names and its moved records. Returns the
-- entries and the place behind them in ARGV.
local function declared(at, key)
  local list = {}
  for place = 1, tonumber(ARGV[at]) do
    local keys = tonumber(ARGV[at + 2])
    list[place] = { id = ARGV[at + 1], first = key, last = key + keys - 1 }
    key = key + keys
    at = at + 2
  end
  return list, at + 1
end

-- How many of the first `count` entries may be dropped with the declared keys alone.
local function droppable(all, count, list)
  for at = 1, count do
    local known = list[at]
    if not known or known.id ~= all[at].id then
      return at - 1
    end
    -- What was moved expires by itself, and then its list is gone, too.
    if all[at].moved > 0 and known.last - known.first - 1 < call('LLEN', KEYS[known.first + 1]) then
      return at - 1
    end
  end
  return count
end

-- Drops the first `count` entries and everything that they saved.
local function drop(key, all, count, list)
  if count == 0 then
    return
  end
  for at = 1, count do
    local known = list[at]
    for from = known.first, known.last, 1000 do
      call('UNLINK', unpack(KEYS, from, min(from + 999, known.last)))
    end
  end
  call('LTRIM', key, count, -1)
end

-- Until when what is due may be reaped: what is due later could still be seen by the oldest snapshot that anybody reads.
local function reapable(all, from, now)
  for at = from, #all do
    local e = all[at]
    if e.finished == 0 or e.finished + GRACE > now then
      return min(now, e.start)
    end
  end
  return now
end

-- An answer of nothing done: how many entries must be dropped, and the snapshots as they are.
local function again(key, must)
  local answer = call('LRANGE', key, 0, -1)
  table.insert(answer, 1, AGAIN)
  table.insert(answer, 2, must)
  return answer
end

-- Runs a command over `list`, at most 1,000 pairs at a time: `unpack` has its limits. The command stands where it is called, so
-- that the server's word of the line names it.
local function chunked(list, run)
  for from = 1, #list, 2000 do
    run(unpack(list, from, min(from + 1999, #list)))
  end
end

