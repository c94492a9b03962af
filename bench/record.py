"""Measured numbers as files: what `make bench` writes, and what docs/benchmarks keeps.

A file is one table, {"title", "page", "about", "unit", "columns", "rows"}.  A row is one run of a command:

    id       its name, by which other texts quote it
    machine  where it ran
    work     what ran
    peer     the other program, with its version; "" where the number stands alone
    date     of the run, YYYY-MM-DD
    command  that repeats it
    values   column -> number, in the row's unit or else the table's
    goal     one number for all columns, or column -> number; left out where there is none
    unit     where it is not the table's
    page     false: kept for quotes and detail, not shown on the page
"""
import json
import statistics

ROW = ("id", "machine", "work", "peer", "date", "command", "values")
OPTIONAL = ("goal", "unit", "page")
TABLE = ("title", "page", "about", "unit", "columns", "rows")


def load(path):
    """The table of a file; a fault in its form ends the program with what and where."""
    with open(path, encoding="utf-8") as f:
        table = json.load(f)
    wrong = set(TABLE) ^ set(table)
    if wrong:
        raise SystemExit(f"{path}: keys of a table are {', '.join(TABLE)}; missing or unknown: {', '.join(sorted(wrong))}")
    ids = set()
    for row in table["rows"]:
        missing = set(ROW) - set(row)
        unknown = set(row) - set(ROW) - set(OPTIONAL)
        if missing or unknown:
            raise SystemExit(f"{path}: row {row.get('id')}: missing {sorted(missing)}, unknown {sorted(unknown)}")
        if row["id"] in ids:
            raise SystemExit(f"{path}: two rows are called {row['id']}")
        if not all(isinstance(x, (int, float)) for x in row["values"].values()) or not row["values"]:
            raise SystemExit(f"{path}: row {row['id']}: values are numbers, at least one")
        ids.add(row["id"])
    return table


def save(path, table):
    """Writes a table, a row on each line, so that a difference of two versions shows which rows changed."""
    head = "".join(f" {json.dumps(k)}: {json.dumps(table[k], ensure_ascii=False)},\n" for k in TABLE if k != "rows")
    rows = ",\n".join("  " + json.dumps({k: r[k] for k in (*ROW[:-1], *OPTIONAL, "values") if k in r}, ensure_ascii=False)
                      for r in table["rows"])
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\n" + head + ' "rows": [\n' + rows + "\n ]\n}\n")


def goal(row, column):
    """What a column should reach, or None."""
    wanted = row.get("goal")
    return wanted.get(column) if isinstance(wanted, dict) else wanted


def mean(row):
    """The geometric mean of a row's values."""
    return statistics.geometric_mean(row["values"].values())
