-- Moves the expiry of a blob. KEYS: manifest, all segments. ARGV: upload, the mark that was seen, our mark, retention.
-- Only over the mark that was seen: a repeat must not undo what others did in between.
if head and upload == ARGV[1] and head:sub(123, 133) == ARGV[3] then return {'renewed', head:sub(91, 106), head:sub(107, 122)} end
if not live then return {'missing', ms(now)} end
if upload ~= ARGV[1] or head:sub(123, 133) ~= ARGV[2] then return {'changed'} end
if redis.call('EXISTS', unpack(KEYS, 2)) ~= #KEYS - 1 then return {'broken'} end
local expires = after(tonumber(ARGV[4]))
-- The first command changes nothing: it is there so that the second is not refused when memory is full.
redis.call('PEXPIREAT', KEYS[1], manifest_end(tonumber(head:sub(107, 122))))
redis.call('SETRANGE', KEYS[1], 90, ms(now) .. ms(expires) .. ARGV[3])
redis.call('PEXPIREAT', KEYS[1], manifest_end(expires))
for i = 2, #KEYS do redis.call('PEXPIREAT', KEYS[i], segment_end(expires)) end
return {'renewed', ms(now), ms(expires)}
