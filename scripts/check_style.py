#!/usr/bin/env python3
"""Counts what the style of the house forbids in C sources and kernels, and fails where there is more of it than
scripts/style_limits.txt allows: lines over 100 columns, assignments joined by a comma, a second `?:` in a line.

    python3 scripts/check_style.py [--list KIND] [--update]

--list long|joined|nested shows the lines of one kind; --update writes the limits of today, which only go down.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = ROOT / "scripts" / "style_limits.txt"
FOLDERS = ["src", "cli", "include", "tests", "bench", "examples", "python/src"]
MOST = 100
JOINED = re.compile(r"^\s*(?!\.)(?:[\w>.\[\]*-]+\s*(?:[-+*/|&^]|<<|>>)?=(?!=)[^;(]*), [\w>.\[\]*-]+\s*(?:[-+*/|&^]|<<|>>)?=(?!=)[^;]*;")
DECLARES = re.compile(r"^\s*(?:static |const |unsigned |struct |enum )*\w+[\s*]+\*?\w+(?:\[[^\]]*\])?\s*=")


def plain(line):
    """The line without strings, characters and comments."""
    line = re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
    line = re.sub(r"'(?:\\.|[^'\\])+'", "' '", line)
    return re.sub(r"/\*.*?(?:\*/|$)|//.*", "", line)


def kinds(line):
    code = plain(line)
    if len(line) > MOST:
        yield "long"
    if JOINED.match(code) and not DECLARES.match(code):
        yield "joined"
    if len(re.findall(r"[^?]\?[^?]", " " + code + " ")) > 1:
        yield "nested"


def main():
    show = sys.argv[sys.argv.index("--list") + 1] if "--list" in sys.argv else None
    counts = dict.fromkeys(["long", "joined", "nested"], 0)
    names = sorted(str(p.relative_to(ROOT)) for folder in FOLDERS for p in (ROOT / folder).rglob("*.*"))
    for name in names:
        if not name.endswith((".c", ".h", ".cl")) or name.startswith(("tests/golden/", "tests/fuzz/corpus/")):
            continue
        for number, line in enumerate((ROOT / name).read_text().split("\n"), 1):
            for kind in kinds(line):
                counts[kind] += 1
                if kind == show:
                    print(f"{name}:{number}: {line.strip()}")
    if show:
        return 0
    if "--update" in sys.argv:
        LIMITS.write_text("".join(f"{kind} {count}\n" for kind, count in counts.items()))
    limits = dict(line.split() for line in LIMITS.read_text().split("\n") if line)
    bad = [kind for kind, count in counts.items() if count > int(limits[kind])]
    print("style: " + ", ".join(f"{kind} {count} of {limits[kind]}" for kind, count in counts.items()))
    for kind in bad:
        print(f"more lines of the kind '{kind}' than before: python3 scripts/check_style.py --list {kind}")
    return 1 if bad else 0


sys.exit(main())
