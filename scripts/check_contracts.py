#!/usr/bin/env python3
"""Every public function says what it does: a comment before its prototype, after it, or before the
type that it takes its options from.  usage: check_contracts.py [HEADER...]"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
PROTOTYPE = re.compile(r"^(?!typedef|static|#|\s)[\w \*]*\bfac_\w+\(")
TYPE_ENDS = re.compile(r"^(\}.*;|typedef .*;|enum \{.*\};)")


def statements(lines):
    """(first line, last line) of each prototype."""
    for at, line in enumerate(lines):
        if PROTOTYPE.match(line):
            end = at
            while ";" not in lines[end]:
                end += 1
            yield at, end


def type_before(lines, at):
    """Where the types that stand directly before line `at` begin."""
    while at and TYPE_ENDS.match(lines[at - 1]):
        end = at - 1
        while end and not re.match(r"(typedef|enum|struct)\b", lines[end]):
            end -= 1
        at = end
    return at


def says(lines, at, end):
    after = lines[end].split(";", 1)[1]
    before = lines[type_before(lines, at) - 1].strip()
    return "/*" in after or before.endswith("*/") and before.startswith(("/*", "*"))


missing = count = 0
for path in map(pathlib.Path, sys.argv[1:] or sorted((root / "include/facula").rglob("*.h"))):
    lines = path.read_text().split("\n")
    for at, end in statements(lines):
        count += 1
        if not says(lines, at, end):
            missing += 1
            name = re.search(r"\b(fac_\w+)\(", lines[at]).group(1)
            print(f"{path.name}:{at + 1}: {name} says nothing of itself")
print(f"contracts: {count} public functions, {missing} without a comment of their own")
sys.exit(missing > 0)
