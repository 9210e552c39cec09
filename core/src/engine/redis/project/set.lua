-- Writes an entry. ARGV: its name, the mark of this write, the JSON text, the expected version or '', the time to live in ms
-- or '', how many live entries there may be.
if ARGV[4] ~= '' and tonumber(ARGV[4]) ~= version then
  return { 'conflict', text(now), tostring(#due) }
end
if version == 0 and call('ZCOUNT', KEYS[2], '(' .. text(now), '+inf') >= tonumber(ARGV[6]) then
  return { 'full', text(now), tostring(#due) }
end
local expires = ARGV[5] ~= '' and now + tonumber(ARGV[5]) or 0
local lasts = version > 0 and string.sub(header, 49, 64) == '0000000000000000'
version = version + 1
local written = string.format('%016.0f%016.0f%016.0f%016.0f', version, created, now, expires) .. ARGV[2] .. ARGV[3]

-- What lasts and goes on lasting stands among the names as it shall: one command does it, or is refused.
if lasts and expires == 0 then
  local said = try('SET', KEYS[3], written)
  if said.err then
    return failed(said, 'SET')
  end
  return { 'stored', text(now), tostring(#due), text(version), text(created), '0' }
end

-- What comes behind the first effect must be allowed: names that expire natively would take live entries along.
local later = { { 'SET', KEYS[3], '' }, { 'PERSIST', KEYS[2] } }
if ARGV[5] ~= '' then
  later = { later[1], { 'ZRANGE', KEYS[2], '0', '0' }, { 'PEXPIREAT', KEYS[2], '0' } }
end
for _, command in ipairs(later) do
  if not allowed(unpack(command)) then
    return redis.error_reply("NOPERM this user has no permissions to run the '" .. command[1] .. "' command")
  end
end
-- Servers before 7.0 cannot be asked: there it is tried by a write that changes nothing.
if not redis.acl_check_cmd then
  local said = try('SET', KEYS[1], '1')
  if said.err then
    return failed(said, 'SET')
  end
end
-- The first effect is what lack of memory refuses; from there on nothing does.
local counted = try('ZADD', KEYS[2], expires == 0 and '+inf' or text(expires), ARGV[1])
if type(counted) == 'table' then
  return failed(counted, 'ZADD')
end
-- Native expiry comes later than ours and is the net only: with the names it takes nothing away that still counts.
if expires == 0 then
  call('SET', KEYS[3], written)
  call('PERSIST', KEYS[2])
else
  call('SET', KEYS[3], written, 'PXAT', text(expires + 60000))
  local latest = call('ZRANGE', KEYS[2], '-1', '-1', 'WITHSCORES')[2]
  if latest ~= 'inf' then
    call('PEXPIREAT', KEYS[2], text(tonumber(latest) + 60000))
  end
end
if not format then
  call('SET', KEYS[1], '1')
end
return { 'stored', text(now), tostring(#due), text(version), text(created), text(expires) }
