"""Parses what malloc_info wrote to standard input and compares the totals with the numbers of mallinfo2."""

import sys
import xml.etree.ElementTree as tree

arena, fast, free, blocks, large = map(int, sys.argv[1:])
root = tree.parse(sys.stdin).getroot()
assert root.tag == "malloc" and root.get("version") == "1", root.attrib
totals = {total.get("type"): total for total in root.findall("total")}
sizes = {kind: int(total.get("size")) for kind, total in totals.items()}
assert sizes == {"fast": fast, "rest": free - fast, "mmap": large}, sizes
assert int(totals["mmap"].get("count")) == blocks
assert [int(system.get("size")) for system in root.findall("system")] == [arena]
heaps = root.findall("heap")
assert heaps and sum(int(heap.find("system").get("size")) for heap in heaps) == arena
