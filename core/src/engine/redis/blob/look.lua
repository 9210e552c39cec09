-- The clock and a manifest in one observation, for lines without transactions. ARGV: the last byte wanted.
local clock = redis.call('TIME')
if redis.call('TYPE', KEYS[1]).ok ~= 'string' then return {clock[1], clock[2]} end
return {clock[1], clock[2], redis.call('GETRANGE', KEYS[1], 0, ARGV[1])}
