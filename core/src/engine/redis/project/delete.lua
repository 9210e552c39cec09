-- Deletes an entry. ARGV: its name, the expected version or ''.
if ARGV[2] ~= '' and tonumber(ARGV[2]) ~= version then
  return { 'conflict', text(now), tostring(#due) }
end
if version == 0 then
  return { 'missing', text(now), tostring(#due) }
end
if not allowed('ZREM', KEYS[2], '') then
  return redis.error_reply("NOPERM this user has no permissions to run the 'zrem' command")
end
-- Servers before 7.0 cannot be asked: there it is tried by taking away what is no name.
if not redis.acl_check_cmd then
  local said = try('ZREM', KEYS[2], '')
  if type(said) == 'table' then
    return failed(said, 'ZREM')
  end
end
call('UNLINK', KEYS[3])
call('ZREM', KEYS[2], ARGV[1])
return { 'deleted', text(now), tostring(#due) }
