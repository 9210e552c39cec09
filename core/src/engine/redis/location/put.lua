-- Puts one record while no snapshot is live: the usual write, done with as few commands as there can be.
-- KEYS: record, format, sequence, index, due, snapshots.
-- ARGV: name, nonce and place, value, retention or '', condition (-, m, or v and the expected stamp).
-- Answer: as commit.lua.
local call = redis.call
local parse, pack = struct.unpack, struct.pack
local format = call('GET', KEYS[2])
if format and format ~= '1' then
  return { 3 }
end
local header = call('GETRANGE', KEYS[1], '0', '33')
if call('EXISTS', KEYS[6]) == 1 then
  local answer = call('LRANGE', KEYS[6], 0, -1)
  table.insert(answer, 1, 2)
  table.insert(answer, 2, 0)
  return answer
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local reap = #call('ZRANGEBYSCORE', KEYS[5], '-inf', string.format('%.0f', now), 'LIMIT', '0', '1')
local live = header ~= ''
if live and (#header < 34 or string.byte(header, 19) ~= 0 or string.byte(header, 27) ~= 0) then
  return { 1, now, 0, 0, reap, -1 }
end
local condition = ARGV[5]
if condition ~= '-' then
  if live then
    local expires = parse('>I8', header, 27)
    live = expires == 0 or expires > now
  end
  if condition == 'm' then
    if live then
      return { 1, now, 0, 0, reap, 0 }
    end
  elseif not live or string.sub(header, 1, 18) ~= string.sub(condition, 2) then
    return { 1, now, 0, 0, reap, 0 }
  end
end
local sequence = redis.pcall('INCR', KEYS[3])
if type(sequence) == 'table' then
  return failed(sequence, 'INCR')
end
if sequence > 9007199254740991 then
  return redis.error_reply('ZLINK the commit sequence is used up')
end
call('ZADD', KEYS[4], '0', ARGV[1])
local retention = ARGV[4]
if retention == '' then
  call('SET', KEYS[1], pack('>I8', sequence) .. ARGV[2] .. pack('>I8I8', now, 0) .. ARGV[3])
else
  local expires = math.min(now + tonumber(retention), 8640000000000000)
  local ends = string.format('%.0f', expires)
  call('ZADD', KEYS[5], ends, ARGV[1])
  ends = string.format('%.0f', expires + 360000)
  call('SET', KEYS[1], pack('>I8', sequence) .. ARGV[2] .. pack('>I8I8', now, expires) .. ARGV[3], 'PXAT', ends)
end
if not format then
  call('SET', KEYS[2], '1')
end
return { 1, now, sequence, 0, reap, 1 }
