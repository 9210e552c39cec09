-- Makes an upload visible. KEYS: manifest, staged first segment, first segment, the other segments. ARGV: upload, digest, size,
-- segment length, mark, retention. Whichever verdict it gives on what is there takes the staged segment away, so that the same
-- call, if it comes again, gives no other one.
if head then
  if upload == ARGV[1] then return {'stored', head:sub(75, 90), head:sub(107, 122)} end
  if live then
    local first_time = redis.call('UNLINK', KEYS[2])
    for i = 4, #KEYS do redis.call('PEXPIREAT', KEYS[i], segment_end(now)) end
    local same = head:sub(27, 66) == ARGV[2] .. ARGV[3]
    return {'taken', same and '1' or '0', head:sub(107, 122), ms(now), tostring(first_time)}
  end
end
if redis.call('EXISTS', KEYS[2], unpack(KEYS, 4)) ~= #KEYS - 2 then return {'gone'} end
local expires = after(tonumber(ARGV[6]))
redis.call('RENAME', KEYS[2], KEYS[3])
for i = 3, #KEYS do redis.call('PEXPIREAT', KEYS[i], segment_end(expires)) end
local times = ms(now) .. ms(now) .. ms(expires)
redis.call('SET', KEYS[1], 'ZLB1' .. ARGV[1] .. ARGV[2] .. ARGV[3] .. ARGV[4] .. times .. ARGV[5],
  'PXAT', manifest_end(expires))
return {'stored', ms(now), ms(expires)}
