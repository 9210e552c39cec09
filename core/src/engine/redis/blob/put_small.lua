-- Puts a blob that lies behind its header. ARGV: upload, digest, size, mark, retention, bytes.
if head then
  if upload == ARGV[1] then return {'stored', head:sub(75, 90), head:sub(107, 122)} end
  if live then return {'taken', head:sub(27, 66) == ARGV[2] .. ARGV[3] and '1' or '0', head:sub(107, 122), ms(now)} end
end
local expires = after(tonumber(ARGV[5]))
local times = ms(now) .. ms(now) .. ms(expires)
redis.call('SET', KEYS[1], 'ZLB1' .. ARGV[1] .. ARGV[2] .. ARGV[3] .. '00000000' .. times .. ARGV[4] .. ARGV[6],
  'PXAT', manifest_end(expires))
return {'stored', ms(now), ms(expires)}
