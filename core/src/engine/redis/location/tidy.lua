-- Marks a scan finished, drops snapshots that nobody needs, and reaps what is due.
-- KEYS: format, snapshots, nothing, index, due; the records of the due names; the keys of the entries that may be dropped.
-- ARGV: number of due names; id of the finished scan or ''; whether nobody will ask for its last page again (1 or 0);
--   droppable entries; the due names.
-- Answer: AGAIN, how many entries must be dropped and the snapshots, NEWER, or DONE, time and the snapshots.
local format, snapshots, nothing, index, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local base = 5
local count, finished = tonumber(ARGV[1]), ARGV[2]
local list, a = declared(4, base + count + 1)

local known = call('GET', format)
if known and known ~= FORMAT then
  return { NEWER }
end
local now = clock()
local all = entries(snapshots)
local marked
if finished ~= '' then
  for at = 1, #all do
    local e = all[at]
    if e.id == finished then
      if ARGV[3] == '1' then
        e.finished = math.max(1, now - GRACE)
      elseif e.finished == 0 then
        e.finished = now
      end
      marked = at
    end
  end
end
local must, may = leaving(all, now, 0)
local leave = droppable(all, may, list)
if leave < must then
  return again(snapshots, must)
end
local headers = {}
local until_ = reapable(all, leave + 1, now)
for k = 1, count do
  local score = call('ZSCORE', due, ARGV[a + k - 1])
  if score and tonumber(score) <= until_ then
    local header = try('GETRANGE', KEYS[base + k], '0', '33')
    if type(header) == 'table' or #header < 34 or byte(header, 19) ~= 0 or byte(header, 27) ~= 0 then
      header = header == '' and header or 'foreign'
    end
    headers[k] = header
  end
end
call('ZCARD', index)

-- Lifts the memory check.
call('DEL', nothing)
if marked and marked > leave then
  call('LSET', snapshots, marked - 1, packed(all[marked]))
end
drop(snapshots, all, leave, list)
local records, names, settled, later = {}, {}, {}, {}
for k = 1, count do
  local header, name = headers[k], ARGV[a + k - 1]
  if header == '' then
    names[#names + 1] = name
    settled[#settled + 1] = name
  elseif header and #header < 34 then
    settled[#settled + 1] = name
  elseif header then
    local expires = parse('>I8', header, 27)
    if expires == 0 then
      settled[#settled + 1] = name
    elseif expires > until_ then
      later[#later + 1] = text(expires)
      later[#later + 1] = name
    else
      records[#records + 1] = KEYS[base + k]
      names[#names + 1] = name
      settled[#settled + 1] = name
    end
  end
end
chunked(later, function(...) call('ZADD', due, ...) end)
chunked(names, function(...) call('ZREM', index, ...) end)
chunked(records, function(...) call('DEL', ...) end)
chunked(settled, function(...) call('ZREM', due, ...) end)

local answer = call('LRANGE', snapshots, 0, -1)
table.insert(answer, 1, DONE)
table.insert(answer, 2, now)
return answer
