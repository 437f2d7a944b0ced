-- Replays a file of requests, one per line: method, path, headers (name=value;...) and body, separated by
-- tabs. In a body, "{n}" becomes a number that rises from the second argument; with as many rows as the third
-- argument says, "{row}" becomes 1 to that many in turns, and "{turn}" the number of turns before.
local lines, count, base, rows = {}, 0, 0, 1

function init(args)
  for line in io.lines(args[1]) do
    local method, path, pairs_, body = line:match("^([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$")
    local headers = {}
    for name, value in pairs_:gmatch("([^=;]+)=([^;]*)") do headers[name] = value end
    lines[#lines + 1] = body:find("{%a+}") and { method, path, headers, body }
      or wrk.format(method, path, headers, body ~= "" and body or nil)
  end
  base = tonumber(args[2] or "0")
  rows = tonumber(args[3] or "1")
end

function request()
  local line = lines[count % #lines + 1]
  local n = base + count
  count = count + 1
  if type(line) == "string" then return line end
  local values = { n = n, row = 1 + n % rows, turn = math.floor(n / rows) }
  local body = line[4]:gsub("{(%a+)}", function(name)
    return values[name] and string.format("%d", values[name])
  end)
  return wrk.format(line[1], line[2], line[3], body)
end
