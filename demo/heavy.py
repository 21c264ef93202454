"""A heap-heavy job without input: the same words, trees and rows on each run, and the same last line."""

import json
import sys
import threading


def tree(depth):
    return (tree(depth - 1), str(depth), tree(depth - 1)) if depth else None


def count(node):
    return 0 if node is None else 1 + count(node[0]) + count(node[2])


def words(scale):
    """A dictionary that grows and loses a third of its entries again and again."""
    seen = {}
    for i in range(120_000 * scale):
        seen[f"word {i * 7919 % 500_009}"] = ["x" * (i % 90), i]
        if i % 3 == 0:
            seen.pop(f"word {i // 2 * 7919 % 500_009}", None)
    return sum(len(text) for text, _ in seen.values())


def rows(scale):
    """Parse and print: many small blocks that all die together."""
    length = 0
    for i in range(4 * scale):
        table = [{"id": n, "name": f"row {n * i}", "tags": [str(n % 7), str(n % 11)]} for n in range(8_000)]
        length += len(json.dumps(json.loads(json.dumps(table))))
    return length


def main():
    scale = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    results = {}
    jobs = {
        "trees": lambda: sum(count(tree(13)) for _ in range(5 * scale)),
        "words": lambda: words(scale),
        "rows": lambda: rows(scale),
    }
    threads = [threading.Thread(target=lambda k=k, job=job: results.update({k: job()})) for k, job in jobs.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sorted(results.items()))


if __name__ == "__main__":
    main()
