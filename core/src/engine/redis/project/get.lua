-- The clock, the format and an entry in one observation. KEYS: format, entry.
local clock = redis.call('TIME')
local kind = redis.call('TYPE', KEYS[2]).ok
return { clock, redis.call('GET', KEYS[1]), kind == 'string' and redis.call('GET', KEYS[2]) }
