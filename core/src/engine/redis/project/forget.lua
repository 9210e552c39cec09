-- Takes back what an acquire may have got that nobody waits for any more, and sees to it that it gets nothing later.
-- KEYS: 8 the cancel mark of the id. ARGV: lock, id.
local lock, id = ARGV[1], ARGV[2]
local lease = lease_of(lock)
-- Changes nothing, and lifts the check of memory for what follows.
call('HDEL', KEYS[5], '')
call('SET', KEYS[8], '1', 'PX', '60000')
remove({ id })
local free = not lease or lease.expires <= now
if lease and lease.id == id then
  retire(lock, lease)
  free = true
end
tidy()
if free then
  wake(lock)
end
return { 'forgotten' }
