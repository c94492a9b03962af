"""What ran where, and why: counts of calls that facula computed and of those that torch did."""
from __future__ import annotations

import threading
from typing import Any


class Explanation(dict[str, Any]):
    """Counts as a dictionary; printed, a short text."""

    def __str__(self) -> str:
        lines = [f"graphs compiled {self['graphs']}, parts by facula {self['parts']}, calls by facula {sum(self['native'].values())},"
                 f" by torch {sum(n for n, _ in self['fallbacks'].values())}"]
        for op, (n, why) in sorted(self["fallbacks"].items(), key=lambda item: -item[1][0]):
            lines.append(f"  torch: {op} x {n}: {why}")
        if self["device"].get("recorded"):
            d = self["device"]
            lines.append(f"device ocl: {d['recorded']} calls recorded, {d['flushes']} segments, {d['planned']} planned,"
                         f" {d['found']} found again")
        for op, (n, why) in sorted(self["device_fallbacks"].items(), key=lambda item: -item[1][0]):
            lines.append(f"  host: {op} x {n}: {why}")
        return "\n".join(lines)

    __repr__ = __str__


_lock = threading.Lock()
_graphs = [0, 0]
_native: dict[str, int] = {}
_fallbacks: dict[str, list[Any]] = {}
_strict = [False]


class FallbackError(NotImplementedError):
    """Strict mode: a call that facula does not compute."""


def compiled(graphs: int, parts: int) -> None:
    with _lock:
        _graphs[0] += graphs
        _graphs[1] += parts


def native(op: str) -> None:
    with _lock:
        _native[op] = _native.get(op, 0) + 1


def fell_back(op: str, why: str) -> None:
    """Counts it; in strict mode an error."""
    with _lock:
        entry = _fallbacks.setdefault(op, [0, why])
        entry[0] += 1
    if _strict[0]:
        raise FallbackError(f"{op} is not computed by facula: {why} (facula.torch.strict(False) lets torch compute it)")


def strict(on: bool = True) -> bool:
    """From now on a call that facula does not compute raises FallbackError, or no longer.  Gives what it was."""
    before = _strict[0]
    _strict[0] = bool(on)
    return before


def is_strict() -> bool:
    return _strict[0]


def explain(reset: bool = False) -> Explanation:
    """What facula computed since the program began, and what torch did, with reasons; reset: count anew."""
    from . import device
    with _lock:
        got = Explanation(graphs=_graphs[0], parts=_graphs[1], native=dict(_native),
                          fallbacks={op: (n, why) for op, (n, why) in _fallbacks.items()}, device=device.stats(),
                          device_fallbacks=device.explained(reset))
        if reset:
            _graphs[:] = [0, 0]
            _native.clear()
            _fallbacks.clear()
    return got
