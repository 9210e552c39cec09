-- The clock and a manifest in one observation. ARGV: the last byte wanted. Without a third item: it is no string.
local clock = redis.call('TIME')
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then return {clock[1], clock[2]} end
return {clock[1], clock[2], redis.call('GETRANGE', KEYS[1], 0, ARGV[1])}
