-- Frees a lock. ARGV: id of its lease.
local lease, lock = lease_by(ARGV[1])
tidy()
if not lease then
  return { 'lost' }
end
retire(lock, lease)
wake(lock)
return { 'released' }
