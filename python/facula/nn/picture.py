"""What a notebook shows of a network: its tree of modules."""
from __future__ import annotations

import html
from typing import Any

from ..tables import quantity


def _own(module: Any) -> int:
    return sum(p.numel() for p in module.parameters())


def _rows(name: str, module: Any, depth: int) -> list[str]:
    label = html.escape(f"{name}: {type(module).__name__}" if name else type(module).__name__)
    extra = html.escape(module.extra_repr())
    n = _own(module)
    count = f"{quantity(n)}" if n else ""
    row = (f"<tr><td style='text-align:left;padding-left:{depth * 1.5}em'>{label}</td>"
           f"<td style='text-align:left;color:gray'>{extra}</td><td>{count}</td></tr>")
    rows = [row]
    for child, m in module.named_children():
        rows += _rows(child, m, depth + 1)
    return rows


def tree(module: Any) -> str:
    """Modules, their options, and how many numbers they learn."""
    return ("<table><thead><tr><th>module</th><th></th><th>parameters</th></tr></thead><tbody>"
            f"{''.join(_rows('', module, 0))}</tbody></table>")
