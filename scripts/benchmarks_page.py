#!/usr/bin/env python3
"""docs/benchmarks/README.md, made of the JSON files beside it, and sentences elsewhere that quote them.

    python3 scripts/benchmarks_page.py            # writes the page
    python3 scripts/benchmarks_page.py --check    # fails where the page or a quoting sentence is not what the numbers say

bench/record.py says what a file holds.  quotes.json lists the sentences: {"file", "text"}, whose {TABLE/ROW/COLUMN:FORMAT}
stand for numbers, as do `least`, `most` and `mean` in the place of a column, over all columns, and `date`, `peer`,
`machine`.  White space does not count.  In README.md every number with a unit of speed or time must be quoted so.
A table without a row to show is only named at the end of the page.  In docs/*.md, what stands
between `<!-- rows TABLE/PREFIX -->` and `<!-- rows -->` is the table of the rows whose ids begin so.
"""
import argparse
import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "bench"))
import record  # noqa: E402

FOLDER = os.path.join(ROOT, "docs", "benchmarks")
ORDER = ["cpu", "cpu_kernels", "training", "python", "gpu", "transformers", "gpu_kernels", "language", "quantized", "bits", "onnx_ops", "analysis", "sound", "studio"]
MEASURE = re.compile(r"\d(?:[\d.,]*\d)? (?:ms|us|ns|s|seconds?|MB|GB/s|tok/s|images/s|[GT]FLOP/s|times as fast)(?![\w/])")
LIMIT = 150     # lines of the page


def number(x):
    """Three digits, which is more than runs repeat; counts as they are."""
    return str(x) if isinstance(x, int) else f"{x:.0f}" if abs(x) >= 100 else f"{x:.1f}" if abs(x) >= 20 else f"{x:.2f}"


def cell(row, column):
    if column not in row["values"]:
        return ""
    value, wanted = row["values"][column], record.goal(row, column)
    text = number(value)
    return f"**{text}**" if wanted is not None and value < wanted else text


def goals(row):
    wanted = row.get("goal")
    if wanted is None:
        return ""
    if isinstance(wanted, dict):
        least, most = min(wanted.values()), max(wanted.values())
        return f"{least:g}" if least == most else f"{least:g} to {most:g}"
    return f"{wanted:g}"


def table_lines(name, table):
    rows = [r for r in table["rows"] if r.get("page", True)]
    unit = any(r.get("unit", table["unit"]) != table["unit"] for r in rows)
    average = table["unit"] == "times as fast" and len(table["columns"]) > 2 and "mean" not in table["columns"]
    head = ["machine", "work", "beside", *table["columns"], *(["mean"] if average else []), "goal", "date", *(["unit"] if unit else [])]
    lines = ["", f"## [{table['title']}]({table['page']}), {table['unit']}", ""]
    if table["about"]:
        lines += [table["about"], ""]
    lines += ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    before = None
    for r in rows:
        cells = ["" if r["machine"] == before else r["machine"], r["work"], r["peer"], *(cell(r, c) for c in table["columns"])]
        cells += [number(record.mean(r)) if len(r["values"]) > 1 else ""] if average else []
        cells += [goals(r), r["date"], *([r.get("unit", "")] if unit else [])]
        lines.append("| " + " | ".join(cells) + " |")
        before = r["machine"]
    return lines


def page(tables):
    lines = ["<!-- made by scripts/benchmarks_page.py from the .json files beside it: edit those -->", "# Benchmarks", "",
             "Today's numbers. Times as fast as the program beside, in one run in which both take turns: above 1 facula is faster.",
             "What misses its goal is **bold**. Each heading leads to the page that has every row, how it was measured and what limits it;",
             "the `.json` file of a table has the command of each row, which repeats it, and rows that are not shown here."]
    for name in ORDER:
        if any(r.get("page", True) for r in tables[name]["rows"]):
            lines += table_lines(name, tables[name])
    rest = [t for name, t in tables.items() if not any(r.get("page", True) for r in t["rows"])]
    lines += ["", "Also measured: " + ", ".join(f"[{t['title']}]({t['page']})" for t in rest) + "."] if rest else []
    return "\n".join(lines) + "\n"


def expand(text, tables, where):
    """The text with its placeholders replaced."""
    def value(m):
        path, _, form = m[1].partition(":")
        table, row_id, what = path.split("/")
        rows = [r for r in tables[table]["rows"] if r["id"] == row_id] if table in tables else []
        if not rows:
            raise SystemExit(f"quotes.json: {where}: there is no row {table}/{row_id}")
        row = rows[0]
        if what in row["values"]:
            found = row["values"][what]
        elif what in ("least", "most", "mean"):
            found = dict(least=min, most=max)[what](row["values"].values()) if what != "mean" else record.mean(row)
        elif what in ("date", "peer", "machine"):
            return row[what]
        else:
            raise SystemExit(f"quotes.json: {where}: row {table}/{row_id} has no {what}")
        return format(found, form or "g")
    return re.sub(r"\{([^{}]+)\}", value, text)


def rows_block(table, prefix, where):
    rows = [r for r in table["rows"] if r["id"].startswith(prefix)]
    if not rows:
        raise SystemExit(f"{where}: there is no row that begins with {prefix}")
    shown = [[r["work"], *(cell(r, c) for c in table["columns"]), goals(r)] for r in rows]
    head = [f"{rows[0]['machine']}, {rows[0]['date']}", *table["columns"], "goal"]
    lines = [head, ["---"] * len(head), *shown]
    note = f"`{rows[0]['command']}`"
    return "\n".join("| " + " | ".join(x) + " |" for x in lines) + f"\n\n{note}\n"


def fill_blocks(tables, check):
    """Generated tables within the pages of docs; with `check` what is not as the numbers say."""
    wrong = []
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        name = os.path.relpath(path, ROOT)
        made = re.sub(r"(<!-- rows (\w+)/(\S+) -->\n).*?(<!-- rows -->)",
                      lambda m: m[1] + rows_block(tables[m[2]], m[3], name) + m[4], text, flags=re.S)
        if made != text and check:
            wrong.append(f"{name}: a table is not what its numbers say: "
                         "python3 scripts/benchmarks_page.py")
        elif made != text:
            with open(path, "w", encoding="utf-8") as f:
                f.write(made)
    return wrong


def squeezed(text):
    return " ".join(text.split())


def unquoted(path, sentences):
    """Lines of a page with a measured number that no quote covers."""
    text, fenced = squeezed(""), False
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    kept = []
    for line in lines:
        fenced ^= line.startswith("```")
        kept.append("" if fenced or line.startswith("    ") else line)
    text = squeezed("\n".join(kept))
    for s in sentences:
        text = text.replace(s, "\0")
    return [text[max(0, m.start() - 40):m.end() + 20] for m in MEASURE.finditer(text)]


def check_quotes(tables):
    import json
    with open(os.path.join(FOLDER, "quotes.json"), encoding="utf-8") as f:
        quotes = json.load(f)
    wrong, sentences = [], {}
    for q in quotes:
        said = squeezed(expand(q["text"], tables, q["file"]))
        sentences.setdefault(q["file"], []).append(said)
        with open(os.path.join(ROOT, q["file"]), encoding="utf-8") as f:
            if said not in squeezed(f.read()):
                wrong.append(f"{q['file']}: does not say, as the numbers do: {said}")
    for place in unquoted(os.path.join(ROOT, "README.md"), sentences.get("README.md", [])):
        wrong.append(f"README.md: a number that docs/benchmarks/quotes.json does not quote: {place}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--check", action="store_true", help="write nothing; fail where something is not what the numbers say")
    a = p.parse_args()
    files = [f for f in sorted(glob.glob(os.path.join(FOLDER, "*.json"))) if os.path.basename(f) != "quotes.json"]
    tables = {os.path.splitext(os.path.basename(f))[0]: record.load(f) for f in files}
    wrong = [f"docs/benchmarks: {name}.json is not in ORDER" for name in tables if name not in ORDER]
    wrong += [f"docs/benchmarks: there is no {t['page']}, of {name}.json" for name, t in tables.items()
              if not os.path.exists(os.path.join(FOLDER, t["page"]))]
    made, path = page(tables), os.path.join(FOLDER, "README.md")
    if made.count("\n") > LIMIT:
        wrong.append(f"docs/benchmarks/README.md has {made.count(chr(10))} lines, at most {LIMIT}: give rows \"page\": false")
    if not a.check:
        with open(path, "w", encoding="utf-8") as f:
            f.write(made)
    elif not os.path.exists(path) or open(path, encoding="utf-8").read() != made:
        wrong.append("docs/benchmarks/README.md is not what its numbers say: python3 scripts/benchmarks_page.py")
    wrong += fill_blocks(tables, a.check)
    wrong += check_quotes(tables)
    print("\n".join(wrong) if wrong else f"{sum(len(t['rows']) for t in tables.values())} rows, all that quotes them agrees")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
