-- Finds the live lease of an id. KEYS: format, leases. ARGV: id.
local call = redis.call
local format = call('GET', KEYS[1])
if format and format ~= '1' then
  return { 'newer' }
end
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local lock = call('HGET', KEYS[2], ARGV[1])
local lease = lock and call('HGET', KEYS[2], lock) or ''
local id, token, expires, length = string.match(lease, '^(%x+) (%d+) (%d+) (%d+)$')
if id ~= ARGV[1] or tonumber(expires) <= now then
  return { 'lost' }
end
return { 'lease', lock, token, expires, length }
