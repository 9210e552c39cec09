-- The clock, a manifest, and its first segment if that has at most ARGV[1] bytes, in one observation.
-- KEYS: manifest, first segment. ARGV: -1 for no segment. Without a third item the manifest is no string.
local clock = redis.call('TIME')
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then return {clock[1], clock[2]} end
local manifest = redis.call('GETRANGE', KEYS[1], 0, 132)
local most = tonumber(ARGV[1])
if most >= 0 and redis.call('TYPE', KEYS[2]).ok == 'string' and redis.call('STRLEN', KEYS[2]) <= most then
  return {clock[1], clock[2], manifest, redis.call('GET', KEYS[2])}
end
return {clock[1], clock[2], manifest}
