-- How every script on a blob begins. KEYS[1] is the manifest, fields of fixed places (manifest.rs).
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local head = nil
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' then
  head = kind == 'string' and redis.call('GETRANGE', KEYS[1], 0, 132) or ''
  if head:sub(1, 3) ~= 'ZLB' then return {'foreign'} end
  if head:sub(4, 4) ~= '1' then return {'newer'} end
  if #head ~= 133 then return {'foreign'} end
end

local upload, live
if head then
  upload = head:sub(5, 26)
  live = tonumber(head:sub(107, 122)) > now
end

-- 16 digits: tostring would write 1e+14.
local function ms(instant) return string.format('%016.0f', instant) end
local function after(milliseconds) return math.min(now + milliseconds, 8640000000000000) end
-- A manifest outlives its expiry a little, so that no expiry of a key in the same script is ever in the past; expiry is judged
-- by what the manifest says. Segments outlive it by the longest read.
local function manifest_end(expires) return string.format('%.0f', expires + 1000) end
local function segment_end(expires) return string.format('%.0f', expires + 60000) end
