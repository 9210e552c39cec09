-- The names that are due, at most ARGV[1].
-- KEYS: snapshots, due. Answer: time, how many snapshots there are, how many of the oldest nobody needs, the score of the
-- first name or '', and the names.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local bound, over = now, 0
local all = redis.call('LRANGE', KEYS[1], 0, -1)
for at = 1, #all do
  local start, finished = struct.unpack('>I8', all[at], 9), struct.unpack('>I8', all[at], 53)
  if start + 300000 > now and (finished == 0 or finished + 10000 > now) then
    bound = math.min(now, start)
    break
  end
  over = at
end
local names = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', bound), 'LIMIT', 0, ARGV[1])
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
return { now, #all, over, first[2] or '', names }
