-- Replays a file of requests, one per line: method, path, headers (name=value;...) and body, separated by
-- tabs. "{n}" in a body becomes a unique number, counted from the second argument.
local lines, count, base = {}, 0, 0

function init(args)
  for line in io.lines(args[1]) do
    local method, path, pairs_, body = line:match("^([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$")
    local headers = {}
    for name, value in pairs_:gmatch("([^=;]+)=([^;]*)") do headers[name] = value end
    local before, after = body:match("^(.*){n}(.*)$")
    lines[#lines + 1] = before and { method, path, headers, before, after }
      or wrk.format(method, path, headers, body ~= "" and body or nil)
  end
  base = tonumber(args[2] or "0")
end

function request()
  local line = lines[count % #lines + 1]
  count = count + 1
  if type(line) == "string" then return line end
  return wrk.format(line[1], line[2], line[3], line[4] .. string.format("%d", base + count) .. line[5])
end
