-- Tables and strings that live through several collections, and as many that do not.

local live = {}
for i = 1, 150000 do
    live[i] = { number = i, name = "n" .. i }
end
for round = 1, 3 do
    local kept = {}
    for i = 1, #live do
        if i % 3 ~= round % 3 then
            kept[#kept + 1] = { number = live[i].number + 1, name = live[i].name .. "a" }
        end
    end
    live = kept
end

local counts = {}
for i = 1, 200000 do
    local key = ("key%d"):format(i * 7919 % 20011)
    counts[key] = (counts[key] or 0) + 1
end
local parts = {}
for key, count in pairs(counts) do
    parts[#parts + 1] = key:rep(count % 5)
end
print(#live, #parts, #table.concat(parts, ","))
