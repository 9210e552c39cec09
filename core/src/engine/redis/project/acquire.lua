-- Takes a lock if it is free and nobody is before us; else waits in its queue, or does not. Called again it finds its work
-- done. KEYS: 8 the cancel mark of the id. ARGV: lock, id, length of the lease in ms, 'wait' or 'leave', the number of our place
-- if we had one or '', the channel that wakes us or ''.
local lock, id = ARGV[1], ARGV[2]
if call('EXISTS', KEYS[8]) == 1 then
  return { 'cancelled' }
end
local lease = lease_of(lock)
local place = call('HGET', KEYS[5], id)
if lease and lease.expires <= now then
  last = math.max(last, lease.token)
elseif lease and lease.id == id then
  return { 'granted', text(lease.token), text(lease.expires) }
end
local free = not lease or lease.expires <= now
local went = tidy(id)
local first, channel = head(lock, id)

if free and (not first or first == id) then
  local token = math.max(last + 1, micros)
  if token > 9007199254740991 then
    return { 'used up' }
  end
  -- The first effect of a grant is what lack of memory refuses, the last one is what makes it.
  local expires = now + tonumber(ARGV[3])
  local entered = try('ZADD', KEYS[3], text(expires), lock)
  if type(entered) == 'table' then
    return failed(entered, 'ZADD')
  end
  call('SET', KEYS[7], text(token))
  if place then
    remove({ id })
  end
  if lease then
    call('HDEL', KEYS[2], lease.id)
  end
  keep(expires)
  if not format then
    call('SET', KEYS[1], '1')
  end
  call('HSET', KEYS[2], id, lock, lock, id .. ' ' .. text(token) .. ' ' .. text(expires) .. ' ' .. ARGV[3])
  return { 'granted', text(token), text(expires) }
end

if ARGV[4] == 'leave' then
  if place then
    remove({ id })
  end
  if free and went then
    wake(lock)
  end
  return { 'busy' }
end

local number = ARGV[5]
if place then
  number = string.sub(place, #lock + 2, #lock + 17)
else
  if number == '' then
    local behind = call('ZREVRANGEBYLEX', KEYS[4], '(' .. lock .. '\1', '[' .. lock .. '\0', 'LIMIT', '0', '1')[1]
    local before = behind and tonumber(string.sub(behind, #lock + 2, #lock + 17)) or 0
    number = string.format('%016.0f', math.max(before + 1, micros))
  end
  place = lock .. '\0' .. number .. id .. ARGV[6]
  local entered = try('ZADD', KEYS[4], '0', place)
  if type(entered) == 'table' then
    return failed(entered, 'ZADD')
  end
  call('HSET', KEYS[5], id, place)
  call('PEXPIRE', KEYS[4], NET)
  call('PEXPIRE', KEYS[5], NET)
  if not format then
    call('SET', KEYS[1], '1')
  end
  first = first or id
end
local heard = try('ZADD', KEYS[6], text(now), id)
if type(heard) == 'table' then
  return failed(heard, 'ZADD')
end
call('PEXPIRE', KEYS[6], NET)
if free and went then
  wake(lock)
end
-- Who is first knows when the lease ends; the others need not.
return { 'queued', number, first == id and not free and text(lease.expires - now) or '' }
