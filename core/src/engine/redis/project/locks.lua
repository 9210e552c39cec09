-- How every script that changes something about locks begins.
-- KEYS: 1 format; 2 leases: lock -> id, token, expiry, length, and id -> lock; 3 locks by expiry of their lease; 4 queues: a lock's
-- places stand together, in their order; 5 places by waiter; 6 waiters by when they were last heard; 7 the last token.
local call, try = redis.call, redis.pcall
local SILENCE = 650
local MOST_SILENT, MOST_OVER = 128, 16
-- What is left of a project that nobody uses any more goes by itself: leases and waiters live a minute at most.
local NET = 120000

local format = call('GET', KEYS[1])
if format and format ~= '1' then
  return { 'newer' }
end
local last = call('GET', KEYS[7]) or '0'
if #last > 16 or string.find(last, '%D') or last == '' then
  return { 'foreign' }
end
last = tonumber(last)
local clock = call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Numbers beyond 1e14 would lose digits otherwise.
local function text(number)
  return string.format('%.0f', number)
end

local function lease_of(lock)
  local id, token, expires, length = string.match(call('HGET', KEYS[2], lock) or '', '^(%x+) (%d+) (%d+) (%d+)$')
  if id then
    return { id = id, token = tonumber(token), expires = tonumber(expires), length = length }
  end
end

-- The live lease of an id, and its lock.
local function lease_by(id)
  local lock = call('HGET', KEYS[2], id)
  local lease = lock and lease_of(lock)
  if lease and lease.id == id and lease.expires > now then
    return lease, lock
  end
end

local function silent_ones()
  return call('ZRANGEBYSCORE', KEYS[6], '-inf', text(now - SILENCE), 'LIMIT', '0', MOST_SILENT)
end

-- Read here, where a foreign type still fails nothing half-way.
local silent = silent_ones()
local over = call('ZRANGEBYSCORE', KEYS[3], '-inf', text(now), 'LIMIT', '0', MOST_OVER)
call('ZCARD', KEYS[4])
call('HLEN', KEYS[5])

-- Sees to it that what holds leases outlives one that expires then. What says until when is with the leases, and keeps the two
-- keys from ever being empty, and so from losing their own expiry.
local function keep(expires)
  if (tonumber(call('HGET', KEYS[2], '') or '') or 0) <= expires + 10000 then
    local net = text(now + NET)
    call('HSET', KEYS[2], '', net)
    call('ZADD', KEYS[3], '+inf', '')
    call('PEXPIREAT', KEYS[2], net)
    call('PEXPIREAT', KEYS[3], net)
  end
end

-- Takes a lease away. Its token stays behind as the last one, wherever the counter was lost.
local function retire(lock, lease)
  call('ZREM', KEYS[3], lock)
  if lease then
    if lease.token > last then
      last = lease.token
      call('SET', KEYS[7], text(last))
    end
    call('HDEL', KEYS[2], lease.id, lock)
  end
end

-- Takes waiters out of their queues.
local function remove(ids)
  local places = {}
  for _, place in ipairs(call('HMGET', KEYS[5], unpack(ids))) do
    places[#places + 1] = place or nil
  end
  if #places > 0 then
    call('ZREM', KEYS[4], unpack(places))
  end
  call('HDEL', KEYS[5], unpack(ids))
  call('ZREM', KEYS[6], unpack(ids))
end

-- Removes the dead among the waiters, `me` aside, and expired leases, both a bounded number at a time. Says whether anybody
-- went.
local function tidy(me)
  local went = false
  for _ = 1, 8 do
    local full = #silent == MOST_SILENT
    for at, id in ipairs(silent) do
      if id == me then
        table.remove(silent, at)
        break
      end
    end
    if #silent > 0 then
      remove(silent)
      went = true
    end
    if not full then
      break
    end
    silent = silent_ones()
  end
  for _, lock in ipairs(over) do
    local lease = lease_of(lock)
    if not lease or lease.expires <= now then
      retire(lock, lease)
    end
  end
  return went
end

-- The first in a lock's queue that is alive, as `me` is: its id and channel.
local function head(lock, me)
  local at = #lock + 18
  for _ = 1, 1000 do
    local place = call('ZRANGEBYLEX', KEYS[4], '[' .. lock .. '\0', '(' .. lock .. '\1', 'LIMIT', '0', '1')[1]
    if not place then
      return
    end
    local id = string.sub(place, at, at + 31)
    local heard = tonumber(call('ZSCORE', KEYS[6], id) or '0')
    if heard > now then
      -- The clock went back: it has its time from now on.
      try('ZADD', KEYS[6], text(now), id)
    end
    if id == me or heard > now - SILENCE then
      return id, string.sub(place, at + 32)
    end
    call('ZREM', KEYS[4], place)
    remove({ id })
  end
end

-- Tells the first in a queue that its lock is free. Where that is not allowed it finds out by itself.
local function wake(lock)
  local id, channel = head(lock)
  if id and channel ~= '' then
    try('PUBLISH', channel, id)
  end
end
