-- Reads as one transaction would, for a client that may not be sent MULTI.
-- KEYS: the keys of the commands, in order. ARGV: for each command its name, its number of keys and of further arguments, and
-- those arguments. Answer: the replies.
local answer, key, a = {}, 1, 1
while ARGV[a] do
  local keys, args = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local command = { unpack(KEYS, key, key + keys - 1) }
  for at = a + 3, a + 2 + args do
    command[#command + 1] = ARGV[at]
  end
  answer[#answer + 1] = redis.pcall(ARGV[a], unpack(command))
  key, a = key + keys, a + 3 + args
end
return answer
