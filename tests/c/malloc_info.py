"""Parses what malloc_info wrote to standard input and compares the totals with the numbers of mallinfo2."""

import sys
import xml.etree.ElementTree as tree

arena, fast, free, blocks, large, free_count = map(int, sys.argv[1:])
root = tree.parse(sys.stdin).getroot()
assert root.tag == "malloc" and root.get("version") == "1", root.attrib
totals = {total.get("type"): total for total in root.findall("total")}
sizes = {kind: int(total.get("size")) for kind, total in totals.items()}
assert sizes == {"fast": fast, "rest": free - fast, "mmap": large}, sizes
assert int(totals["mmap"].get("count")) == blocks
assert [int(system.get("size")) for system in root.findall("system")] == [arena]
heaps = root.findall("heap")
assert heaps and sum(int(heap.find("system").get("size")) for heap in heaps) == arena

# Free blocks by size: as many as mallinfo2 counts, and all that is free but for what is cut off between blocks.
sizes = [{key: int(value) for key, value in size.attrib.items()} for size in root.iter("size")]
assert sizes and all(set(size) == {"from", "to", "total", "count"} for size in sizes), sizes
for size in sizes:
    assert 0 < size["from"] <= size["to"] and size["count"] > 0, size
    assert size["from"] * size["count"] <= size["total"] <= size["to"] * size["count"], size
assert sum(size["count"] for size in sizes) == free_count
rest = free - sum(size["total"] for size in sizes)
assert 0 <= rest < arena / 16, (rest, arena)
for heap in heaps:
    counts = {total.get("type"): int(total.get("count")) for total in heap.findall("total")}
    listed = sum(int(size.get("count")) for size in heap.find("sizes"))
    assert listed == counts["fast"] + counts["rest"], (listed, counts)
