"""Curves as SVG, which a notebook shows without another package."""
from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

_colours = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")


def _panel(title: str, lines: Mapping[str, Sequence[float]], x0: int, width: int, height: int) -> str:
    values = [v for ys in lines.values() for v in ys if math.isfinite(v)]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if high == low:
        high = low + 1
    n = max((len(ys) for ys in lines.values()), default=1)
    left, top, w, h = x0 + 50, 28, width - 70, height - 60

    def px(i: int) -> float:
        return left + w * i / max(n - 1, 1)

    def py(v: float) -> float:
        return top + h * (high - v) / (high - low)
    parts = [f"<text x='{x0 + width / 2}' y='16' text-anchor='middle' font-weight='bold'>{html.escape(title)}</text>",
             f"<rect x='{left}' y='{top}' width='{w}' height='{h}' fill='none' stroke='#bbb'/>"]
    for k in range(5):
        v = low + (high - low) * k / 4
        parts.append(f"<line x1='{left}' x2='{left + w}' y1='{py(v):.1f}' y2='{py(v):.1f}' stroke='#eee'/>"
                     f"<text x='{left - 4}' y='{py(v) + 4:.1f}' text-anchor='end' fill='#666'>{v:.3g}</text>")
    for c, (name, ys) in enumerate(lines.items()):
        points = " ".join(f"{px(i):.1f},{py(v):.1f}" for i, v in enumerate(ys) if math.isfinite(v))
        colour = _colours[c % len(_colours)]
        parts.append(f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='2'/>"
                     f"<text x='{left + 6 + 90 * c}' y='{height - 8}' fill='{colour}'>{html.escape(name)}</text>")
    return "".join(parts)


def curves(lines: Mapping[str, Sequence[float]], width: int = 640, height: int = 260) -> str:
    """Lines by name; those of losses, of accuracies and of other things in panels of their own."""
    panels: dict[str, dict[str, Sequence[float]]] = {}
    for name, ys in lines.items():
        kind = "loss" if "loss" in name else "accuracy" if "accuracy" in name else name
        panels.setdefault(kind, {})[name] = ys
    each = width // max(len(panels), 1)
    inner = "".join(_panel(t, p, i * each, each, height) for i, (t, p) in enumerate(panels.items()))
    return f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' font-family='sans-serif' font-size='11'>{inner}</svg>"
