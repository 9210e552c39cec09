-- Deletes a blob if it is still the one that was seen. KEYS: manifest, first segment, the others. ARGV: upload. Who is reading
-- it now has got the first segment together with the manifest, and has the time to get the others.
if upload ~= ARGV[1] then return {'other'} end
redis.call('DEL', KEYS[1])
redis.call('UNLINK', KEYS[2])
for i = 3, #KEYS do redis.call('PEXPIREAT', KEYS[i], segment_end(now)) end
return {'deleted'}
