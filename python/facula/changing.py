"""What changes from call to call.  A start of a slice or an attribute is part of a plan, so each new one plans anew; one that is
seen to change is given as an operand instead, and all calls share one plan."""
from __future__ import annotations

from typing import Any

from ._facula import is_lazy, is_tracing, lazy_epoch

MOST = 8                                                    # turns with something new, before it is taken to go on
KEPT = 4096                                                 # forms; when there are more all are forgotten


class _Form:
    __slots__ = ("epoch", "first", "seen", "turns", "varied")

    def __init__(self, first: tuple[Any, ...]) -> None:
        self.first, self.seen = first, {first}
        self.epoch, self.turns = -1, 1
        self.varied: set[int] = set()


_forms: dict[tuple[Any, ...], _Form] = {}


def moves(what: str, x: Any, *numbers: float) -> bool:
    """Does one of these attributes of a call that takes x change from call to call?"""
    return bool(varying((what, x.shape, x.dtype), numbers))


def varying(form: tuple[Any, ...], values: tuple[Any, ...]) -> set[int] | frozenset[int]:
    """Which of these numbers change in calls of one form; none while that is not clear, and while a graph is made of the calls.

    In lazy mode what is new within one segment is one turn: an unrolled loop reads many places and is one plan all the same."""
    if is_tracing():
        return frozenset()
    f = _forms.get(form)
    if f is None:
        if len(_forms) >= KEPT:
            _forms.clear()
        _forms[form] = _Form(values)
        return frozenset()
    if f.turns <= MOST:
        if values in f.seen:
            return frozenset()
        f.seen.add(values)
    f.varied.update(k for k, (a, b) in enumerate(zip(f.first, values)) if a != b)
    if f.turns <= MOST:
        now = lazy_epoch() if is_lazy() else len(f.seen)
        f.turns += now != f.epoch
        f.epoch = now
        if f.turns <= MOST:
            return frozenset()
        f.seen.clear()
    return f.varied
