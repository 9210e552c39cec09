-- Removes entries that have expired. KEYS: format, names by expiry, the entries. ARGV: their names. Who was written again
-- meanwhile stays.
local call = redis.call
local format = call('GET', KEYS[1])
if format and format ~= '1' then
  return { 'newer' }
end
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local names, entries = {}, {}
for at, name in ipairs(ARGV) do
  local expires = call('ZSCORE', KEYS[2], name)
  if expires and tonumber(expires) <= now then
    names[#names + 1] = name
    entries[#entries + 1] = KEYS[at + 2]
  end
end
if #names > 0 then
  call('UNLINK', unpack(entries))
  call('ZREM', KEYS[2], unpack(names))
end
return { 'reaped', string.format('%.0f', now) }
