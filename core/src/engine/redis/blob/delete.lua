-- Deletes a blob if it is still the one that was seen. KEYS: manifest, segments. ARGV: upload. Who is reading it now has the
-- time to finish.
if upload ~= ARGV[1] then return {'other'} end
redis.call('DEL', KEYS[1])
for i = 2, #KEYS do redis.call('PEXPIREAT', KEYS[i], segment_end(now)) end
return {'deleted'}
