-- An error that `redis.pcall` of a command gave back, as the server would have said it itself: 6.2 puts the place in the script
-- before it, and leaves the code out where a permission is missing; which one, only newer servers than 7.0 say.
local function failed(error, command)
  local said = string.gsub(error.err, '^@user_script: *%d+: *', '')
  if string.find(said, "can't run this command", 1, true) then
    said = "NOPERM this user has no permissions to run the '" .. command .. "' command"
  end
  said = string.gsub(said, '^%-', '')
  return redis.error_reply(string.find(said, '^%u+ ') and said or 'ERR ' .. said)
end
