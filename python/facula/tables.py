"""Tables: rows of equal keys that print well, in a terminal and in a notebook, and that pandas takes."""
from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def quantity(x: float) -> str:
    """1234567 as "1.23 M"."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(x) >= size:
            return f"{x / size:.3g} {unit}"
    return f"{x:.4g}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        return "x".join(str(v) for v in value) if all(isinstance(v, int) for v in value) else str(value)
    return str(value)


class Table(Sequence[dict[str, Any]]):
    """A list of dictionaries.  `pandas.DataFrame(table)` takes it as it is."""

    def __init__(self, rows: Sequence[dict[str, Any]], columns: Sequence[str] | None = None, title: str = "") -> None:
        self.rows = list(rows)
        self.columns = list(columns) if columns else list(self.rows[0]) if self.rows else []
        self.title = title

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return [row[key] for row in self.rows]
        if isinstance(key, slice):
            return Table(self.rows[key], self.columns, self.title)
        return self.rows[key]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def sorted(self, key: str | Callable[[dict[str, Any]], Any], reverse: bool = True) -> Table:
        """By a column, the largest first."""
        by = (lambda row: row[key]) if isinstance(key, str) else key
        return Table(sorted(self.rows, key=by, reverse=reverse), self.columns, self.title)

    def where(self, **equal: Any) -> Table:
        """The rows whose columns have these values."""
        return Table([r for r in self.rows if all(r.get(k) == v for k, v in equal.items())], self.columns, self.title)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame; pandas has to be there."""
        import pandas
        return pandas.DataFrame(self.rows, columns=self.columns)

    def __repr__(self) -> str:
        cells = [[_cell(row.get(c)) for c in self.columns] for row in self.rows]
        wide = [max([len(c), *(len(r[i]) for r in cells)]) for i, c in enumerate(self.columns)]
        right = [all(isinstance(r.get(c), (int, float)) or r.get(c) is None for r in self.rows) for c in self.columns]

        def line(words: Sequence[str]) -> str:
            return "  ".join(w.rjust(n) if r else w.ljust(n) for w, n, r in zip(words, wide, right)).rstrip()
        head = [self.title] if self.title else []
        return "\n".join([*head, line(self.columns), *(line(r) for r in cells)])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.columns)
        rows = []
        for row in self.rows:
            rows.append("<tr>" + "".join(f"<td>{html.escape(_cell(row.get(c)))}</td>" for c in self.columns) + "</tr>")
        title = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


class Report(dict[str, Any]):
    """A dictionary whose entries are attributes, too, and that prints a line for each."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no entry {name!r}: there are {', '.join(self)}") from None

    def _lines(self) -> list[tuple[str, str]]:
        out = []
        for key, value in self.items():
            if isinstance(value, Table):
                text = f"{len(value)} rows"
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                text = quantity(value)
            else:
                text = _cell(value)
            out.append((key, text))
        return out

    def __repr__(self) -> str:
        lines = self._lines()
        wide = max((len(k) for k, _ in lines), default=0)
        return "\n".join(f"{k.ljust(wide)}  {v}" for k, v in lines)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in self._lines())
        return f"<table>{rows}</table>"
