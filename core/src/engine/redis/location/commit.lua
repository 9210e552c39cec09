-- Commits groups of conditions and mutations that touch no key in common, each as a whole or not at all.
-- KEYS: format, sequence, index, due, snapshots, nothing; the records, group by group; if the newest snapshot is known:
--   for each record the key that a large old value is moved to, then the undo hash and the list of names moved; the keys of
--   the entries that may be dropped.
-- ARGV: number of record keys; id of the newest snapshot or ''; droppable entries; number of groups; for each group the
--   number of its keys, and for each key its name, a code (condition: - m v; mutation: - d p r) and what the code asks for:
--   v: the expected stamp; p: nonce and place, value; r: those and the retention.
-- Answer: AGAIN, how many entries must be dropped and the snapshots, NEWER, or DONE, time, first sequence, whether snapshots are live, whether something is
--   due, and for each group 1 (applied), 0 (conflict) or -1 (foreign data).
local records, newest_id = tonumber(ARGV[1]), ARGV[2]
local base = 6
local undo = base + 2 * records + 1
local list, a = declared(3, newest_id == '' and base + records + 1 or undo + 2)
local format, sequence, index, due, snapshots, nothing = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]

local known = call('GET', format)
if known and known ~= FORMAT then
  return { NEWER }
end
local now = clock()
call('ZCARD', index)
local newest = call('LINDEX', snapshots, -1)
local oldest
if newest then
  newest = entry(newest)
  oldest = entry(call('LINDEX', snapshots, 0))
end

-- Conditions and foreign data.
local DASH, MISSING, DELETE, PUT, RETAINED, VERSION = 45, 109, 100, 112, 114, 118
local groups = tonumber(ARGV[a])
local answer = { DONE, now, 0, 0, 0 }
local changes, puts, retained, deletes, commits, k = {}, 0, 0, 0, 0, base
a = a + 1
for group = 1, groups do
  local keys = tonumber(ARGV[a])
  local status, first, putting, retaining = 1, #changes, 0, 0
  a = a + 1
  for _ = 1, keys do
    k = k + 1
    local name = ARGV[a]
    local condition, mutation = byte(ARGV[a + 1], 1, 2)
    a = a + 2
    local header = try('GETRANGE', KEYS[k], 0, 33)
    if type(header) == 'table' then
      if not string.find(header.err, 'WRONGTYPE', 1, true) then
        return failed(header)
      end
      status = -1
    elseif header ~= '' and (#header < 34 or byte(header, 19) ~= 0 or byte(header, 27) ~= 0) then
      status = -1
    elseif condition ~= DASH and status == 1 then
      local live = header ~= ''
      if live then
        local expires = parse('>I8', header, 27)
        live = expires == 0 or expires > now
      end
      if condition == MISSING then
        if live then
          status = 0
        end
      elseif not live or sub(header, 1, 18) ~= ARGV[a] then
        status = 0
      end
    end
    if condition == VERSION then
      a = a + 1
    end
    if mutation ~= DASH then
      changes[#changes + 1] = { k = k, name = name, mutation = mutation, header = header, a = a }
      if mutation == PUT then
        putting = putting + 1
        a = a + 2
      elseif mutation == RETAINED then
        putting, retaining = putting + 1, retaining + 1
        a = a + 3
      end
    end
  end
  answer[5 + group] = status
  if status == 1 then
    if putting > 0 then
      for at = first + 1, #changes do
        changes[at].commit = commits
      end
      commits = commits + 1
      puts, retained = puts + putting, retained + retaining
    end
    deletes = deletes + #changes - first - putting
  else
    for at = #changes, first + 1, -1 do
      changes[at] = nil
    end
  end
end

-- What is due is read here, where a foreign type still fails nothing half-way.
local reap = call('ZRANGEBYSCORE', due, '-inf', text(newest and min(now, oldest.start) or now), 'LIMIT', 0, 1)
answer[4], answer[5] = newest and 1 or 0, #reap
if #changes == 0 then
  return answer
end

-- What the newest snapshot saves, and who must leave.
local saves, need, leave, all = {}, 0, 0, nil
if newest then
  for at = 1, #changes do
    local change = changes[at]
    if change.header ~= '' and parse('>I8', change.header) <= newest.sequence then
      change.size = call('STRLEN', KEYS[change.k])
      need = need + change.size + #change.name + OVERHEAD
      saves[#saves + 1] = change
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
-- The commands that come last must all be allowed, or a commit that needs two of them could be torn.
if retained > 0 and puts > retained or deletes > 0 and puts > 0 then
  local allowed, key = redis.acl_check_cmd, KEYS[base + 1]
  if allowed and not (allowed('DEL', key) and allowed('MSET', key, '') and allowed('SET', key, '')) then
    return redis.error_reply('NOPERM this user may not run one of del, mset, set')
  end
end

-- From here on nothing fails: the first effect is what lack of memory refuses, or what lifts that check.
local last = 0
if puts > 0 then
  last = try('INCRBY', sequence, commits)
  if type(last) == 'table' then
    return failed(last)
  end
  if last > 9007199254740991 then
    return redis.error_reply('ZLINK the commit sequence is used up')
  end
  answer[3] = last - commits + 1
else
  call('DEL', nothing)
end
if all then
  drop(snapshots, all, leave, list)
end
if #saves > 0 then
  local ends = text(newest.start + LIFE + MARGIN)
  for at = 1, #saves do
    local save = saves[at]
    local record = KEYS[save.k]
    if save.size >= LARGE then
      local aside = KEYS[save.k + records]
      call('HSET', KEYS[undo], save.name, sub(save.header, 1, 8) .. sub(save.header, 27, 34))
      call('RPUSH', KEYS[undo + 1], save.name)
      call('RENAME', record, aside)
      call('PEXPIREAT', aside, ends)
      newest.moved = newest.moved + 1
    else
      call('HSET', KEYS[undo], save.name, call('GET', record))
    end
  end
  call('PEXPIREAT', KEYS[undo], ends)
  call('PEXPIREAT', KEYS[undo + 1], ends)
  newest.bytes = newest.bytes + need
  call('LSET', snapshots, -1, packed(newest))
end

local stamps, time, never = {}, pack('>I8', now), pack('>I8', 0)
local durable, expiring, names, dues, gone, left = {}, {}, {}, {}, {}, {}
for at = 1, #changes do
  local change = changes[at]
  local name, c = change.name, change.a
  if change.mutation == DELETE then
    if change.header ~= '' then
      gone[#gone + 1] = KEYS[change.k]
      left[#left + 1] = name
      if newest then
        dues[#dues + 1] = text(newest.start + 1)
        dues[#dues + 1] = name
      end
    end
  else
    local stamp = stamps[change.commit]
    if not stamp then
      stamp = pack('>I8', answer[3] + change.commit)
      stamps[change.commit] = stamp
    end
    names[#names + 1] = 0
    names[#names + 1] = name
    if change.mutation == PUT then
      durable[#durable + 1] = KEYS[change.k]
      durable[#durable + 1] = stamp .. ARGV[c] .. time .. never .. ARGV[c + 1]
    else
      local expires = min(now + tonumber(ARGV[c + 2]), 8640000000000000)
      dues[#dues + 1] = text(expires)
      dues[#dues + 1] = name
      expiring[#expiring + 1] = { KEYS[change.k], stamp .. ARGV[c] .. time .. pack('>I8', expires) .. ARGV[c + 1], expires }
    end
  end
end
chunked('ZADD', index, names)
chunked('ZADD', due, dues)
if not newest then
  chunked('ZREM', index, left)
  chunked('ZREM', due, left)
end
chunked('DEL', nil, gone)
chunked('MSET', nil, durable)
for at = 1, #expiring do
  local put = expiring[at]
  call('SET', put[1], put[2], 'PXAT', text(put[3] + LIFE + MARGIN))
end
if puts > 0 and not known then
  call('SET', format, FORMAT)
end
return answer
