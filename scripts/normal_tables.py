#!/usr/bin/env python3
"""Writes src/text/normal_tables.h: canonical decompositions, classes of marks, some categories.

    pip install unicodedata2; python scripts/normal_tables.py > src/text/normal_tables.h

From the Unicode Character Database that Python or the package unicodedata2 has.
"""
import sys
try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata


def ranges(fact):
    """[first, last, value] of characters whose fact is true."""
    found = []
    for c in range(0x110000):
        value = fact(chr(c))
        if not value:
            continue
        if found and found[-1][1] == c - 1 and found[-1][2] == value:
            found[-1][1] = c
        else:
            found.append([c, c, value])
    return found


def pairs():
    """c, first, second (0: none): canonical decompositions, one step, without Hangul."""
    rows = []
    for c in range(0x110000):
        text = unicodedata.decomposition(chr(c))
        if text and not text.startswith("<") and not 0xac00 <= c <= 0xd7a3:
            parts = [int(p, 16) for p in text.split()]
            rows.append((c, parts[0], parts[1] if len(parts) > 1 else 0))
    return rows


def table(name, about, type_, rows):
    print(f"\n/* {about} */\nstatic const {type_} {name}[] = {{")
    line = "   "
    for row in rows:
        text = " { " + ", ".join(f"0x{x:x}" for x in row) + " },"
        if len(line) + len(text) > 98:
            print(line)
            line = "   "
        line += text
    print(line + "\n};")


def main():
    print(f"/* Made by scripts/normal_tables.py from Unicode {unicodedata.unidata_version}; sorted. */")
    print("#ifndef FACULA_TEXT_NORMAL_TABLES_H\n#define FACULA_TEXT_NORMAL_TABLES_H\n#include <stdint.h>\n")
    print("/* Both ends belong to a range. */")
    print("typedef struct normal_range { uint32_t first, last; int is; } normal_range;")
    print("typedef struct normal_pair { uint32_t c, first, second; } normal_pair;")
    all_pairs = pairs()
    table("normal_pairs", "c is first, second; one step; second 0: first alone", "normal_pair", all_pairs)
    joins = [(c, a, b) for c, a, b in all_pairs if b and unicodedata.normalize("NFC", chr(a) + chr(b)) == chr(c)]
    table("normal_joins", "first and second make c", "normal_pair", sorted(joins, key=lambda r: r[1:]))
    table("normal_classes", "canonical combining classes that are not 0", "normal_range",
          ranges(unicodedata.combining))
    kind = unicodedata.category
    table("normal_marks", "Mn", "normal_range", ranges(lambda c: int(kind(c) == "Mn")))
    table("normal_punctuation", "P", "normal_range", ranges(lambda c: int(kind(c)[0] == "P")))
    table("normal_format", "Cf, Co", "normal_range", ranges(lambda c: int(kind(c) in ("Cf", "Co"))))
    print("#endif")


if __name__ == "__main__":
    sys.exit(main())
