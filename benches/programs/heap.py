"""Dictionaries, lists, strings and JSON that grow, change and go; regular expressions over a long text."""

import json
import random
import re

random.seed(1)

records = {f"key{i}": [i, str(i) * 3, {"name": i, "list": [1, 2, 3]}] for i in range(25000)}
text = json.dumps(records)
again = json.loads(text)
for i in range(0, 25000, 3):
    del again[f"key{i}"]

lists = [list(range(random.randrange(200))) for _ in range(8000)]
for _ in range(4):
    random.shuffle(lists)
    lists = [part + [1] if len(part) < 190 else part[:5] for part in lists]

words = re.findall(r"[a-z]+[0-9]+", text)
swapped = re.sub(r'"(name)": ([0-9]+)', r'"\2": "\1"', text)
tree = {}
for word in words:
    tree.setdefault(word[:5], {}).setdefault(word[5:], []).append(word)

print(len(text), len(again), sum(map(len, lists)), len(words), len(swapped), len(tree))
