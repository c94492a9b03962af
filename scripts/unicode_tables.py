#!/usr/bin/env python3
"""Writes src/base/unicode/unicode_tables.h: which characters are letters, marks and numbers, and their small forms.

    pip install unicodedata2; python scripts/unicode_tables.py > src/base/unicode/unicode_tables.h

From the Unicode Character Database that the package unicodedata2, else Python, has: general categories L*, M*, N*, and the simple lower case mapping.
"""
import sys
try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata


def ranges(kind):
    found = []
    for c in range(0x110000):
        if unicodedata.category(chr(c))[0] != kind:
            continue
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def lower_runs():
    """first, last, step (1 or 2), what is added: characters whose small form is one character."""
    pairs = [(c, ord(chr(c).lower()) - c) for c in range(0x80, 0x110000)
             if len(chr(c).lower()) == 1 and chr(c).lower() != chr(c)]
    runs = []
    for c, delta in pairs:
        last = runs[-1] if runs else None
        if last and last[3] == delta and (c - last[1] == last[2] or last[0] == last[1] and c - last[1] in (1, 2)):
            last[2] = c - last[1]
            last[1] = c
        else:
            runs.append([c, c, 1, delta])
    return runs


def table(name, about, type_, rows):
    print(f"\n/* {about} */\nstatic const {type_} {name}[] = {{")
    line = "   "
    for row in rows:
        text = " { " + ", ".join(f"0x{x:x}" if k < 2 else str(x) for k, x in enumerate(row)) + " },"
        if len(line) + len(text) > 100:
            print(line)
            line = "   "
        line += text
    print(line + "\n};")


def main():
    print(f"/* Made by scripts/unicode_tables.py from Unicode {unicodedata.unidata_version}.  Both ends belong to a range; "
          "sorted. */")
    print("#ifndef FACULA_BASE_UNICODE_TABLES_H\n#define FACULA_DATA_UNICODE_TABLES_H\n#include <stdint.h>\n")
    print("typedef struct unicode_range { uint32_t first, last; } unicode_range;")
    print("typedef struct unicode_run { uint32_t first, last, step; int32_t add; } unicode_run;")
    table("unicode_letters", "General category L", "unicode_range", ranges("L"))
    table("unicode_marks", "General category M", "unicode_range", ranges("M"))
    table("unicode_numbers", "General category N", "unicode_range", ranges("N"))
    table("unicode_lower", "Every step-th character of a run has its small form so much further on; without ASCII",
          "unicode_run", lower_runs())
    print("#endif")


if __name__ == "__main__":
    sys.exit(main())
