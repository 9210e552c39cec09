-- How every script that changes a state entry begins. KEYS: format, names by expiry, the entry.
-- An entry is a header of fixed places (entry.rs) and the JSON text. What is not live is as good as absent.
local call, try = redis.call, redis.pcall
local format = call('GET', KEYS[1])
if format and format ~= '1' then
  return { 'newer' }
end
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local header = call('GETRANGE', KEYS[3], '0', '79')
local version, created = 0, now
if header ~= '' then
  if #header < 80 or string.find(string.sub(header, 1, 64), '%D') then
    return { 'foreign' }
  end
  local expires = tonumber(string.sub(header, 49, 64))
  if expires == 0 or expires > now then
    version = tonumber(string.sub(header, 1, 16))
    created = tonumber(string.sub(header, 17, 32))
  end
end
-- A foreign type is found out here, before anything is changed.
local due = call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', '0', '1')

-- Numbers beyond 1e14 would lose digits otherwise.
local function text(number)
  return string.format('%.0f', number)
end

-- Whether this user may run a command that must not fail any more when it comes (servers before 7.0 do not tell).
local function allowed(...)
  return not redis.acl_check_cmd or redis.acl_check_cmd(...)
end
