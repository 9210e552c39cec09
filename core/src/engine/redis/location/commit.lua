-- Commits groups of conditions and mutations that touch no key in common, each as a whole or not at all.
-- KEYS: format, sequence, index, due, snapshots, nothing; the records, group by group; if the newest snapshot is known: for
--   each record the key that a large old value is moved to, then the undo hash and the list of moved names; the keys of the
--   entries that may be dropped.
-- ARGV: number of records; bytes in front of the name in a record's key; id of the newest snapshot or ''; droppable entries;
--   for each record what is asked of it, and the value if it is put. What is asked: + (a group begins) or -; condition (-, m
--   or v); mutation (-, d, p or r); for p and r nonce and place, 10 bytes; for v the expected stamp, 18 bytes or none that
--   can match; for r the retention.
-- Answer: AGAIN, how many entries must be dropped and the snapshots, NEWER, or DONE, time, first sequence, whether snapshots
--   are live, whether something is due, and for each group 1 (applied), 0 (conflict) or -1 (foreign data).
local format, sequence, index, due, snapshots, nothing = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local records, stem, newest_id = tonumber(ARGV[1]), tonumber(ARGV[2]) + 1, ARGV[3]
local first, last = 7, 6 + records
local undo = last + records + 1
local list, a = declared(4, newest_id == '' and last + 1 or undo + 2)

local known = call('GET', format)
if known and known ~= FORMAT then
  return { NEWER }
end
local now = clock()
call('ZCARD', index)
local newest = call('LINDEX', snapshots, '-1')
local oldest
if newest then
  newest = entry(snapshots, newest)
  oldest = entry(snapshots, call('LINDEX', snapshots, '0'))
end

-- Conditions and foreign data. By record: its header, group and place of its value in ARGV; by group: its status, and the
-- place of its sequence among the commits of this call, if it puts anything.
local PLUS, DASH, MISSING, VERSION, DELETE, PUT, RETAINED = 43, 45, 109, 118, 100, 112, 114
local asked, headers, group_of, values = {}, {}, {}, {}
local status, commit_of = {}, {}
local group = 0
for k = first, last do
  local what = ARGV[a]
  local begins, condition, mutation = byte(what, 1, 3)
  a = a + 1
  if begins == PLUS then
    group = group + 1
    status[group] = 1
  end
  asked[k], group_of[k] = what, group
  local skip = 4
  if mutation == PUT or mutation == RETAINED then
    values[k] = a
    a = a + 1
    skip = 14
  end
  local header = try('GETRANGE', KEYS[k], '0', '33')
  headers[k] = header
  if header == '' then
    if condition == VERSION and status[group] == 1 then
      status[group] = 0
    end
  elseif type(header) == 'table' then
    if not string.find(header.err, 'WRONGTYPE', 1, true) then
      return failed(header, 'GETRANGE')
    end
    status[group] = -1
  elseif #header < 34 or byte(header, 19) ~= 0 or byte(header, 27) ~= 0 then
    status[group] = -1
  elseif condition ~= DASH and status[group] == 1 then
    local expires = parse('>I8', header, 27)
    local live = expires == 0 or expires > now
    if condition == MISSING then
      if live then
        status[group] = 0
      end
    elseif not live or sub(header, 1, 18) ~= sub(what, skip, skip + 17) then
      status[group] = 0
    end
  end
end

local commits, durable, retained, deleted = 0, 0, 0, 0
for k = first, last do
  group = group_of[k]
  if status[group] == 1 then
    local mutation = byte(asked[k], 3)
    if mutation == DELETE then
      deleted = deleted + 1
    elseif mutation ~= DASH then
      if mutation == PUT then
        durable = durable + 1
      else
        retained = retained + 1
      end
      if not commit_of[group] then
        commit_of[group] = commits
        commits = commits + 1
      end
    end
  end
end

-- What is due is read here, where a foreign type still fails nothing half-way.
local reap = call('ZRANGEBYSCORE', due, '-inf', text(newest and min(now, oldest.start) or now), 'LIMIT', '0', '1')
local answer = { DONE, now, 0, newest and 1 or 0, #reap, unpack(status) }
if durable + retained + deleted == 0 then
  return answer
end

-- What the newest snapshot saves, and who must leave.
local saves, sizes, need, leave, all = {}, {}, 0, 0, nil
if newest then
  for k = first, last do
    local header = headers[k]
    if header ~= '' and status[group_of[k]] == 1 and byte(asked[k], 3) ~= DASH and parse('>I8', header) <= newest.sequence then
      local size = call('STRLEN', KEYS[k])
      need = need + size + #KEYS[k] + OVERHEAD
      saves[#saves + 1] = k
      sizes[#saves] = size
    end
  end
  if now < newest.start or oldest.start + LIFE <= now or newest.base + newest.bytes - oldest.base + need > BOUND then
    all = entries(snapshots)
    leave = leaving(all, now, need)
    if droppable(all, leave, list) < leave then
      return again(snapshots, leave)
    end
  end
  if all and leave == #all then
    newest, saves, answer[4] = nil, {}, 0
  elseif #saves > 0 then
    if newest.id ~= newest_id then
      return again(snapshots, leave)
    end
    call('HLEN', KEYS[undo])
    call('LLEN', KEYS[undo + 1])
  end
end
-- The commands that come last must all be allowed, or a commit that needs two of them could be torn. Servers before 7.0 cannot
-- be asked: there it is tried by calls that do nothing (SET first, which lack of memory refuses), without MSET, which has none.
local one_by_one = false
if min(durable, 1) + min(retained, 1) + min(deleted, 1) > 1 then
  local allowed, key = redis.acl_check_cmd, KEYS[first]
  if not allowed then
    one_by_one = true
    for _, probe in ipairs({ { 'SET', nothing, '', 'XX' }, { 'DEL', nothing } }) do
      local said = try(unpack(probe))
      if type(said) == 'table' and said.err then
        return failed(said, probe[1])
      end
    end
  else
    for _, probe in ipairs({ { 'DEL', key }, { 'MSET', key, '' }, { 'SET', key, '' } }) do
      if not allowed(unpack(probe)) then
        return redis.error_reply("NOPERM this user has no permissions to run the '" .. probe[1] .. "' command")
      end
    end
  end
end

-- From here on nothing fails: the first effect is what lack of memory refuses, or what lifts that check.
local base = 0
if commits > 0 then
  local counted = try('INCRBY', sequence, commits)
  if type(counted) == 'table' then
    return failed(counted, 'INCRBY')
  end
  if counted > 9007199254740991 then
    return redis.error_reply('ZLINK the commit sequence is used up')
  end
  base = counted - commits + 1
  answer[3] = base
else
  call('DEL', nothing)
end
if all then
  drop(snapshots, all, leave, list)
end
if #saves > 0 then
  local ends = text(newest.start + LIFE + MARGIN)
  for at, k in ipairs(saves) do
    local record, name, header = KEYS[k], sub(KEYS[k], stem), headers[k]
    if sizes[at] >= LARGE then
      local aside = KEYS[k + records]
      call('HSET', KEYS[undo], name, sub(header, 1, 8) .. sub(header, 27, 34))
      call('RPUSH', KEYS[undo + 1], name)
      call('RENAME', record, aside)
      call('PEXPIREAT', aside, ends)
      newest.moved = newest.moved + 1
    else
      call('HSET', KEYS[undo], name, call('GET', record))
    end
  end
  call('PEXPIREAT', KEYS[undo], ends)
  call('PEXPIREAT', KEYS[undo + 1], ends)
  newest.bytes = newest.bytes + need
  call('LSET', snapshots, -1, packed(newest))
end

-- The records come last, so that a name without a record is the worst that a missing permission can leave.
local stamps, times, forever = {}, pack('>I8', now), pack('>I8I8', now, 0)
local names, dues, gone, left, puts, expiring = {}, {}, {}, {}, {}, {}
local n, p = 0, 0
for k = first, last do
  group = group_of[k]
  local what, key = asked[k], KEYS[k]
  local mutation = byte(what, 3)
  if mutation ~= DASH and status[group] == 1 then
    local name = sub(key, stem)
    if mutation == DELETE then
      if headers[k] ~= '' then
        gone[#gone + 1] = key
        left[#left + 1] = name
        if newest then
          dues[#dues + 1] = text(newest.start + 1)
          dues[#dues + 1] = name
        end
      end
    else
      local stamp = stamps[group]
      if not stamp then
        stamp = pack('>I8', base + commit_of[group])
        stamps[group] = stamp
      end
      names[n + 1], names[n + 2] = '0', name
      n = n + 2
      stamp = stamp .. sub(what, 4, 13)
      if mutation == PUT then
        puts[p + 1], puts[p + 2] = key, stamp .. forever .. ARGV[values[k]]
        p = p + 2
      else
        local retention = tonumber(sub(what, byte(what, 2) == VERSION and 32 or 14))
        local expires = min(now + retention, 8640000000000000)
        dues[#dues + 1] = text(expires)
        dues[#dues + 1] = name
        expiring[#expiring + 1] = { key, stamp .. times .. pack('>I8', expires) .. ARGV[values[k]], expires }
      end
    end
  end
end
chunked(names, function(...) call('ZADD', index, ...) end)
chunked(dues, function(...) call('ZADD', due, ...) end)
if not newest then
  chunked(left, function(...) call('ZREM', index, ...) end)
  chunked(left, function(...) call('ZREM', due, ...) end)
end
chunked(gone, function(...) call('DEL', ...) end)
if one_by_one then
  for at = 1, p, 2 do
    call('SET', puts[at], puts[at + 1])
  end
else
  chunked(puts, function(...) call('MSET', ...) end)
end
for at = 1, #expiring do
  local put = expiring[at]
  call('SET', put[1], put[2], 'PXAT', text(put[3] + LIFE + MARGIN))
end
if commits > 0 and not known then
  call('SET', format, FORMAT)
end
return answer
