"""Lazy calls: operators are recorded, and computed together when somebody looks at a value.

    with fac.lazy():
        for x, y in batches:
            loss = net.loss(x, y)
            opt.zero_grad(); loss.backward(); opt.step()

FACULA_LAZY=1 in the environment makes it so from the start, in every thread; set_lazy() and
`with fac.lazy()` speak for their own thread.  A step of training becomes one program, which is
planned in the first step and found again in the next ones.  Results are those of eager calls but for
the rounding inside of operators that were joined.
"""
from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from . import _facula


class lazy:
    """Calls inside are recorded; what is left over is computed at the end.  lazy(False) computes at once."""

    def __init__(self, on: bool = True) -> None:
        self.on = on
        self._before: list[bool] = []

    def __enter__(self) -> lazy:
        self._before.append(_facula.set_lazy(self.on))
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        _facula.set_lazy(self._before.pop())
        if kind is None:
            flush()


_facula.set_lazy_at_first(os.environ.get("FACULA_LAZY", "0") not in ("", "0"))


def set_lazy(on: bool) -> bool:
    """Records this thread's calls from now on, or computes them at once; what it was before."""
    return _facula.set_lazy(on)


def is_lazy() -> bool:
    """Are calls recorded here, and computed on the first read?"""
    return _facula.is_lazy()


def flush(device: Any = None) -> None:
    """Computes what is recorded."""
    _facula.flush(device)


def lazy_stats(device: Any = None) -> dict[str, int]:
    """Segments computed, how many of them were found again, how many planned; recorded operators."""
    return _facula.lazy_stats(device)
