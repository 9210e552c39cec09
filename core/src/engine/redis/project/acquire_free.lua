-- The short way to a lock that is free, while nobody waits in the project, nothing has expired and nothing is there that should
-- not: whatever else there is, the long way finds out and does. It writes what the long way writes. KEYS and ARGV: acquire.lua.
do
  local call, lock, id = redis.call, ARGV[1], ARGV[2]
  local known = call('MGET', KEYS[1], KEYS[7])
  local last = known[2]
  last = last and #last <= 16 and not string.find(last, '%D') and tonumber(last)
  if known[1] == '1' and last and last < 9007199254740991 and call('EXISTS', KEYS[4], KEYS[5], KEYS[6], KEYS[8]) == 0 then
    local clock = call('TIME')
    local micros = clock[1] * 1000000 + clock[2]
    local now = math.floor(micros / 1000)
    local expires = now + ARGV[3]
    local held = call('HMGET', KEYS[2], lock, '')
    local net = held[2] and tonumber(held[2])
    if not held[1] and net and net > expires + 10000
      and #call('ZRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', now), 'LIMIT', '0', '1') == 0 then
      local token = string.format('%.0f', math.max(last + 1, micros))
      expires = string.format('%.0f', expires)
      -- The first effect is what lack of memory refuses, the last one is what makes it.
      local entered = redis.pcall('ZADD', KEYS[3], expires, lock)
      if type(entered) == 'number' then
        call('SET', KEYS[7], token)
        call('HSET', KEYS[2], id, lock, lock, id .. ' ' .. token .. ' ' .. expires .. ' ' .. ARGV[3])
        return { 'granted', token, expires }
      end
    end
  end
end
